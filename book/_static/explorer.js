/* Draws stored runs: the reader's choice is in the address, the curves of a study are in
   _static/runs/STUDY.js, the chart itself (window.fedExplorer.chart) is made when the book is built. */
(() => {
  const { studies, axes, chart } = window.fedExplorer;
  const top = new URL("../", location.href.split(/[?#]/)[0]);
  const form = document.querySelector(".explorer-form");
  const at = (name) => document.querySelector(`.explorer-${name}`);
  const pick = form.elements;
  const held = {};
  let view, rows, study;

  window.fedRuns = (name, data) => (held[name] = data);
  const load = (name) =>
    held[name]
      ? Promise.resolve()
      : new Promise((resolve, reject) => {
          const script = document.createElement("script");
          script.src = new URL(`_static/runs/${name}.js`, top);
          script.onload = resolve;
          script.onerror = reject;
          document.head.append(script);
        });

  const asked = () => new URLSearchParams(location.hash.slice(1) || location.search);
  const fill = (select, names, chosen) => {
    select.replaceChildren(
      ...names.map((name) => new Option(name, name, false, chosen.includes(name))),
    );
  };
  const chosen = () => [...pick.runs.selectedOptions].map((option) => option.value);

  /* What can be chosen of a study: its runs, and the quantities that some chosen run has. */
  const offer = (wanted) => {
    const names = Object.keys(study.runs);
    const word = pick.filter.value.trim().toLowerCase();
    const fitting = names.filter((name) => name.toLowerCase().includes(word) || wanted.includes(name));
    const first = wanted.filter((name) => names.includes(name));
    fill(pick.runs, fitting, first.length ? first : fitting.slice(0, 3));
  };
  const quantities = (wanted) => {
    const names = new Set(chosen().flatMap((name) => Object.keys(study.runs[name].y)));
    fill(pick.metric, [...names], [names.has(wanted) ? wanted : [...names][0]]);
  };

  const differing = () => {
    const sets = chosen().map((name) => study.runs[name].set);
    const keys = [...new Set(sets.flatMap(Object.keys))];
    return keys.filter((key) => new Set(sets.map((one) => one[key])).size > 1);
  };

  const points = (keys) =>
    chosen().flatMap((name) => {
      const run = study.runs[name];
      const curve = run.y[pick.metric.value];
      if (!curve) return [];
      const [row, mean, std] = curve;
      const told = Object.fromEntries(keys.map((key, i) => [`s${i}`, run.set[key] ?? ""]));
      return run.x[row]
        .map((x, i) => ({
          run: name, x: x * run.unit[pick.axis.value], mean: mean[i], std: std[i] ?? 0, ...told,
        }))
        .filter((point) => point.mean !== null && (!pick.log.checked || point.mean > 0));
    });

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const look = () => {
    const [ink, line, ground] = ["text-base", "border", "background"].map((n) =>
      colour(`--pst-color-${n}`),
    );
    const words = { labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 13 };
    return {
      background: ground,
      axis: { ...words, gridColor: line, domainColor: ink, tickColor: ink },
      legend: words,
      view: { stroke: null },
      font: "sans-serif",
    };
  };

  const drawn = () => {
    const keys = differing();
    rows = points(keys);
    const least = Math.min(...rows.map((point) => point.mean));
    for (const point of rows) {
      point.low = point.mean - point.std;
      point.high = point.mean + point.std;
      if (pick.log.checked) point.low = Math.max(point.low, least / 2);
    }
    const spec = structuredClone(chart);
    delete spec.config;
    spec.datasets = { curves: rows };
    spec.width = at("chart").clientWidth;
    spec.autosize = { type: "fit", contains: "padding" };
    const [band, line, dots] = spec.layer;
    for (const layer of spec.layer) {
      layer.encoding.x.title = axes[pick.axis.value];
      layer.encoding.x.axis = { format: "~s", tickCount: 6 };
      layer.encoding.y.title = pick.metric.value;
      layer.encoding.y.scale = pick.log.checked ? { type: "log" } : { zero: false };
      layer.encoding.color.legend.columns = innerWidth < 600 ? 1 : 3;
    }
    if (chosen().length > 24) for (const layer of spec.layer) layer.encoding.color.legend = null;
    dots.encoding.tooltip = [
      { field: "run", title: "run" },
      { field: "x", title: axes[pick.axis.value], format: ",.6~r" },
      { field: "mean", title: pick.metric.value, format: ".5~g" },
      { field: "std", title: "± over seeds", format: ".2~g" },
      ...keys.map((key, i) => ({ field: `s${i}`, title: key })),
    ];
    return spec;
  };

  const table = () => {
    const names = chosen().slice(0, 12);
    const keys = differing();
    const head = ["setting", ...names].map((text) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      return cell;
    });
    const all = { ...study.shared };
    for (const name of names) Object.assign(all, study.runs[name].set);
    const order = [...keys, ...Object.keys(all).filter((key) => !keys.includes(key))];
    const made = document.createElement("table");
    made.className = "table table-fed";
    made.createTHead().insertRow().append(...head);
    const body = made.createTBody();
    for (const key of order) {
      const line = body.insertRow();
      const title = document.createElement("th");
      title.scope = "row";
      title.textContent = key;
      line.append(title);
      const values = names.map((name) => study.runs[name].set[key] ?? study.shared[key] ?? "");
      const same = new Set(values).size === 1;
      for (const value of same ? values.slice(0, 1) : values) {
        const cell = line.insertCell();
        cell.textContent = value;
        if (same) cell.colSpan = names.length;
      }
    }
    at("settings").replaceChildren(made);
  };

  const code = () => {
    const [metric, axis] = [pick.metric.value, pick.axis.value];
    const name = `${pick.study.value}-${metric}`;
    const list = chosen().map((run) => JSON.stringify(run)).join(", ");
    return [
      "import seaborn as sns",
      "",
      "from papers import STUDIES",
      "from papers.kit import explore",
      "",
      `runs = [${list}]`,
      `data = explore.table(STUDIES["${pick.study.value}"], runs, "${metric}", "${axis}")`,
      `data.to_csv("${name}.csv", index=False)`,
      `axes = sns.lineplot(data, x="${axis}", y="${metric}", hue="run", errorbar="sd")`,
      `axes.set(xlabel="${axes[axis]}"${pick.log.checked ? ', yscale="log"' : ""})`,
      `axes.figure.savefig("${name}.svg", bbox_inches="tight")`,
      "",
    ].join("\n");
  };

  const csv = () => {
    const axis = pick.axis.value;
    const lines = rows.map((p) => [p.run, p.x, p.mean, p.std].join(","));
    return [`run,${axis},mean,std`, ...lines, ""].join("\n");
  };

  const offerFiles = async () => {
    const name = `${pick.study.value}-${pick.metric.value}`;
    const give = (kind, address) => {
      at(kind).href = address;
      at(kind).download = `${name}.${kind}`;
    };
    give("csv", `data:text/csv;charset=utf-8,${encodeURIComponent(csv())}`);
    give("svg", `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await view.toSVG())}`);
    give("png", await view.toImageURL("png", 2));
  };

  const draw = async () => {
    const said = `${chosen().length} of ${Object.keys(study.runs).length} runs of ${study.title}`;
    at("said").textContent = said;
    at("page").href = new URL(`notebooks/${pick.study.value}.html`, top);
    at("code").textContent = code();
    const choice = new URLSearchParams({
      study: pick.study.value,
      metric: pick.metric.value,
      axis: pick.axis.value,
      runs: chosen().join(","),
    });
    if (pick.log.checked) choice.set("log", "1");
    const address = `#${choice.toString().replaceAll("%2C", ",")}`;
    if (location.hash !== address) history.replaceState(null, "", address);
    table();
    view?.finalize();
    const made = await vegaEmbed(at("chart"), drawn(), {
      actions: false, renderer: "svg", config: look(),
    });
    view = made.view;
    await offerFiles();
    at("chart").dataset.drawn = rows.length;
  };

  const open = async (wanted) => {
    const name = wanted.get("study") in studies ? wanted.get("study") : Object.keys(studies)[0];
    pick.study.value = name;
    await load(name);
    study = held[name];
    offer((wanted.get("runs") ?? "").split(",").filter(Boolean));
    quantities(wanted.get("metric"));
    if (wanted.get("axis") in axes) pick.axis.value = wanted.get("axis");
    pick.log.checked = wanted.get("log") === "1";
    await draw();
  };

  for (const [name, title] of Object.entries(studies))
    pick.study.append(new Option(`${title} (${name})`, name));
  form.addEventListener("submit", (event) => event.preventDefault());
  pick.filter.addEventListener("input", () => offer(chosen()));
  form.addEventListener("change", (event) => {
    if (event.target === pick.filter) return;
    if (event.target === pick.study) {
      pick.filter.value = "";
      open(new URLSearchParams({ study: pick.study.value }));
      return;
    }
    if (event.target === pick.runs) quantities(pick.metric.value);
    draw();
  });
  addEventListener("hashchange", () => open(asked()));
  at("copy").addEventListener("click", () => navigator.clipboard?.writeText(code()));
  let width = innerWidth, turned;
  addEventListener("resize", () => {
    if (!study || width === innerWidth) return; // a phone's address bar slid away
    width = innerWidth;
    delete at("chart").dataset.drawn;
    clearTimeout(turned);
    turned = setTimeout(draw, 200);
  });
  new MutationObserver(() => study && draw()).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
  open(asked());
})();
