/* Small pictures that move: a div with data-live="fedsgm", "fedfw", "fedcmoo", "ssca" (computed here, round by round)
   and a div of class live-rates (numbers of its own table). No library. Nothing starts by itself for a reader who asked for
   reduced motion; everybody else can pause. */
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const BLUE = "#3b82c4", ORANGE = "#d9822b", GREEN = "#2e9b6b", RED = "#c8453b";

  const make = (parent, tag, attributes = {}, text = "") => {
    const node = document.createElementNS(NS, tag);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text) node.textContent = text;
    parent.append(node);
    return node;
  };
  const html = (parent, tag, properties = {}) => {
    const node = Object.assign(document.createElement(tag), properties);
    parent.append(node);
    return node;
  };
  /* A rectangle of the picture with axes of its own; xt and yt are ticks, [value, text]. */
  const panel = (svg, { x, y, width, height, xs, ys, title = "", clip, xt = [], yt = [] }) => {
    const group = make(svg, "g");
    make(group, "rect", { x, y, width, height, fill: "none", stroke: "currentColor", "stroke-opacity": 0.35 });
    if (title) make(group, "text", { x, y: y - 7, "font-size": 13, fill: "currentColor" }, title);
    const id = `live-${clip}`;
    make(make(group, "clipPath", { id }), "rect", { x, y, width, height });
    const inner = make(group, "g", { "clip-path": `url(#${id})` });
    const X = (v) => x + ((v - xs[0]) / (xs[1] - xs[0])) * width;
    const Y = (v) => y + height - ((v - ys[0]) / (ys[1] - ys[0])) * height;
    const tick = { "font-size": 11, fill: "currentColor" };
    for (const [v, text] of xt) {
      make(group, "path", { d: `M${X(v)},${y + height}v4`, stroke: "currentColor" });
      make(group, "text", { x: X(v), y: y + height + 15, "text-anchor": "middle", ...tick }, text);
    }
    for (const [v, text] of yt) {
      make(group, "path", { d: `M${x},${Y(v)}h-4`, stroke: "currentColor" });
      make(group, "text", { x: x - 6, y: Y(v) + 4, "text-anchor": "end", ...tick }, text);
    }
    const line = (points, attributes) => make(inner, "polyline",
      { points: points.map(([a, b]) => `${X(a).toFixed(1)},${Y(b).toFixed(1)}`).join(" "), fill: "none", ...attributes });
    const dot = ([a, b], attributes) => make(inner, "circle", { cx: X(a), cy: Y(b), r: 4, ...attributes });
    const say = ([a, b], text, attributes = {}) => make(inner, "text",
      { x: X(a), y: Y(b), "font-size": 12, fill: "currentColor", ...attributes }, text);
    return { line, dot, say, clear: () => inner.replaceChildren() };
  };
  const curve = (f, [a, b], n = 160) => Array.from({ length: n + 1 }, (_, i) => {
    const x = a + ((b - a) * i) / n;
    return [x, f(x)];
  });
  /* Numbers that look random and are the same in every visit. */
  const random = (seed) => () => {
    seed = (seed * 1664525 + 1013904223) % 4294967296;
    return seed / 4294967296;
  };

  /* Play, pause, one round, again; `choices` are [label, value] of a select. */
  function player(host, { label, width, height, rounds, choices, start, step, draw }) {
    const svg = make(host, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const bar = html(host, "div", { className: "live-bar" });
    const play = html(bar, "button", { type: "button" });
    const one = html(bar, "button", { type: "button", textContent: "One round" });
    const again = html(bar, "button", { type: "button", textContent: "Again" });
    let select;
    if (choices) {
      select = html(html(bar, "label", { textContent: choices.label }), "select");
      for (const [text, value] of choices.of) html(select, "option", { textContent: text, value });
    }
    const said = html(bar, "span", { className: "live-said" });
    let state, timer = null;
    const show = () => { said.textContent = draw(svg, state); };
    const advance = () => {
      if (state.t >= rounds) { stop(); return; }
      step(state);
      state.t += 1;
      show();
    };
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
    const go = () => {
      if (state.t >= rounds) reset();
      timer = setInterval(advance, 140);
      play.textContent = "Pause";
    };
    const reset = () => { state = { t: 0, ...start(select ? select.value : "") }; show(); };
    play.addEventListener("click", () => (timer === null ? go() : stop()));
    one.addEventListener("click", () => { stop(); advance(); });
    again.addEventListener("click", () => { stop(); reset(); });
    if (select) select.addEventListener("change", () => { reset(); if (still) finish(); });
    const finish = () => { while (state.t < rounds) { step(state); state.t += 1; } show(); };
    stop();
    reset();
    if (still) { finish(); return; }
    new IntersectionObserver((seen, observer) => {
      if (!seen[0].isIntersecting) return;
      observer.disconnect();
      if (timer === null && state.t === 0) go();
    }, { threshold: 0.6 }).observe(svg);
  }

  const LIVE = {};

  /* Two clients with quadratic objectives, a half-plane as the constraint, three local steps a round. */
  LIVE.fedsgm = (host) => {
    const goals = [[2.2, 1.6], [1.2, 2.4]], level = 2.2, lr = 0.06, local = 3, beta = 4;
    const g = (w) => w[0] + w[1] - level;
    player(host, {
      label: "The path of the model in the plane, towards the best point of two clients, switched at a straight constraint.",
      width: 640, height: 330, rounds: 90,
      choices: { label: "Switching ", of: [["hard", "hard"], ["soft", "soft"]] },
      start: (mode) => ({ mode, w: [-0.8, 0.2], path: [[-0.8, 0.2]], switched: [] }),
      step: (s) => {
        const z = g(s.w);
        const sigma = s.mode === "hard" ? Number(z > 0) : Math.min(1, Math.max(0, 1 + beta * z));
        const ends = goals.map((a) => {
          let u = s.w;
          for (let e = 0; e < local; e += 1)
            u = u.map((v, k) => v - lr * ((1 - sigma) * (v - a[k]) + sigma));
          return u;
        });
        s.w = [0, 1].map((k) => (ends[0][k] + ends[1][k]) / 2);
        s.path.push(s.w);
        s.switched.push([sigma, g(s.w)]);
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        const plane = panel(svg, { x: 8, y: 26, width: 330, height: 295, xs: [-1.2, 2.8], ys: [-0.4, 3.1], title: "the model's two parameters", clip: "sgm1" });
        plane.line([[-3, level + 3], [5, level - 5], [5, 9], [-3, 9]], { fill: RED, "fill-opacity": 0.12 });
        plane.line([[-3, level + 3], [5, level - 5]], { stroke: RED, "stroke-width": 1.5 });
        plane.say([1.3, 2.9], "violated", { fill: RED });
        goals.forEach((a, j) => { plane.dot(a, { fill: "none", stroke: "currentColor" }); plane.say([a[0] - 0.15, a[1] - 0.22], `client ${j + 1}`); });
        plane.dot([0.95, 1.25], { r: 6, fill: "none", stroke: GREEN, "stroke-width": 2 });
        plane.say([0.1, 0.95], "solution", { fill: GREEN });
        plane.line(s.path, { stroke: BLUE, "stroke-width": 2 });
        plane.dot(s.w, { fill: BLUE });
        const right = panel(svg, { x: 372, y: 26, width: 260, height: 120, xs: [0, 90], ys: [-0.1, 1.1], title: "0: objective, 1: constraint", clip: "sgm2" });
        s.switched.forEach(([v], t) => right.line([[t + 0.5, 0], [t + 0.5, v]], { stroke: ORANGE, "stroke-width": 2.4 }));
        const below = panel(svg, { x: 372, y: 186, width: 260, height: 135, xs: [0, 90], ys: [-0.6, 0.25], title: "g, violated above the line", clip: "sgm3" });
        below.line([[0, 0], [90, 0]], { stroke: RED });
        below.line(s.switched.map(([, z], t) => [t + 1, z]), { stroke: BLUE, "stroke-width": 1.6 });
        const over = s.switched.filter(([, z]) => z > 1e-9).length;
        return `round ${s.t}: ${over} of ${s.t} rounds end above the line`;
      },
    });
  };

  /* Two clients whose corners are opposite. The set is the l1 ball. */
  LIVE.fedfw = (host) => {
    const goals = [[3, 0.5], [-1, 0.5]], lam0 = 0.5, best = [0.75, 0.25];
    const corner = (v) => {
      const k = Math.abs(v[0]) >= Math.abs(v[1]) ? 0 : 1;
      return [0, 1].map((i) => (i === k ? -Math.sign(v[i]) : 0));
    };
    player(host, {
      label: "A diamond with the models of two clients and their mean; the corners to which the clients move.",
      width: 640, height: 330, rounds: 120,
      choices: { label: "Clients ", of: [["keep their own models (FedFW)", "fedfw"], ["average corners", "naive"]] },
      start: (mode) => ({ mode, x: [[0, 0], [0, 0]], w: [0, 0], s: [[0, 0], [0, 0]], gaps: [] }),
      step: (s) => {
        const eta = 2 / (s.t + 2), lam = lam0 * Math.sqrt(s.t + 2), own = s.mode === "fedfw";
        s.s = goals.map((a, j) => corner([0, 1].map((k) => {
          const x = own ? s.x[j][k] : s.w[k];
          return (x - a[k]) / 2 + (own ? lam * (x - s.w[k]) : 0);
        })));
        s.x = s.x.map((x, j) => [0, 1].map((k) => (1 - eta) * x[k] + eta * s.s[j][k]));
        s.w = [0, 1].map((k) => (own ? (s.x[0][k] + s.x[1][k]) / 2 : (1 - eta) * s.w[k] + (eta * (s.s[0][k] + s.s[1][k])) / 2));
        s.gaps.push(Math.hypot(s.w[0] - best[0], s.w[1] - best[1]));
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        const set = panel(svg, { x: 8, y: 26, width: 330, height: 295, xs: [-1.35, 1.35], ys: [-1.2, 1.2], title: "set, clients' corners, mean", clip: "fw1" });
        set.line([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]], { stroke: "currentColor", fill: "currentColor", "fill-opacity": 0.06 });
        set.dot(best, { r: 6, fill: "none", stroke: GREEN, "stroke-width": 2 });
        set.say([0.72, 0.42], "optimum", { fill: GREEN });
        s.s.forEach((c, j) => {
          const from = s.mode === "fedfw" ? s.x[j] : s.w;
          set.line([from, c], { stroke: [BLUE, ORANGE][j], "stroke-dasharray": "4 3" });
          set.dot(c, { r: 5, fill: [BLUE, ORANGE][j] });
          if (s.mode === "fedfw") set.dot(s.x[j], { r: 4, fill: "none", stroke: [BLUE, ORANGE][j], "stroke-width": 2 });
        });
        set.dot(s.w, { r: 6, fill: "currentColor" });
        const gap = panel(svg, { x: 372, y: 26, width: 260, height: 295, xs: [0, 120], ys: [0, 1.3], title: "distance to the optimum", clip: "fw2" });
        gap.line(s.gaps.map((v, t) => [t + 1, v]), { stroke: "currentColor", "stroke-width": 1.8 });
        const far = s.gaps.length ? s.gaps.at(-1) : Math.hypot(...best);
        return `round ${s.t}: distance ${far.toFixed(2)}`;
      },
    });
  };

  /* Two quadratics; the weights are those of the shortest combination of the two gradients. */
  LIVE.fedcmoo = (host) => {
    const a = [-1, 0], b = [1, 0.6], scale = [[1, 2.5], [2, 1]];
    const grads = (w) => [a, b].map((c, m) => w.map((v, k) => scale[m][k] * (v - c[k])));
    const losses = (w) => [a, b].map((c, m) => w.reduce((sum, v, k) => sum + (scale[m][k] * (v - c[k]) ** 2) / 2, 0));
    const best = (l) => [0, 1].map((k) => (l * scale[0][k] * a[k] + (1 - l) * scale[1][k] * b[k]) / (l * scale[0][k] + (1 - l) * scale[1][k]));
    const front = curve((l) => l, [0, 1], 80).map(([l]) => best(l));
    const weigh = ([p, q]) => {
      const d = [p[0] - q[0], p[1] - q[1]], long = d[0] ** 2 + d[1] ** 2;
      return long ? Math.min(1, Math.max(0, -(q[0] * d[0] + q[1] * d[1]) / long)) : 0.5;
    };
    player(host, {
      label: "Left, the gradients of two objectives and their shortest combination at the model; right, the two losses and the Pareto front.",
      width: 640, height: 330, rounds: 80,
      choices: { label: "Start ", of: [["above", "-0.9,1.7"], ["left", "-1.7,-0.9"], ["right", "1.8,-0.6"]] },
      start: (from) => { const w = from.split(",").map(Number); return { w, path: [w] }; },
      step: (s) => {
        const [p, q] = grads(s.w), l = weigh([p, q]);
        s.w = s.w.map((v, k) => v - 0.06 * (l * p[k] + (1 - l) * q[k]));
        s.path.push(s.w);
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        const plane = panel(svg, { x: 8, y: 26, width: 330, height: 295, xs: [-2.1, 2.2], ys: [-1.6, 2.1], title: "downhill steps, shortest mixture", clip: "cm1" });
        plane.line(front, { stroke: "currentColor", "stroke-opacity": 0.4, "stroke-width": 5 });
        plane.dot(a, { fill: BLUE }); plane.say([a[0] - 0.25, a[1] - 0.3], "best for 1", { fill: BLUE });
        plane.dot(b, { fill: ORANGE }); plane.say([b[0] - 0.1, b[1] + 0.2], "best for 2", { fill: ORANGE });
        plane.line(s.path, { stroke: GREEN, "stroke-width": 2 });
        const [p, q] = grads(s.w), l = weigh([p, q]), ends = [p, q].map((v) => [s.w[0] - 0.35 * v[0], s.w[1] - 0.35 * v[1]]);
        plane.line(ends, { stroke: "currentColor", "stroke-dasharray": "2 3" });
        ends.forEach((e, m) => plane.line([s.w, e], { stroke: [BLUE, ORANGE][m], "stroke-width": 2 }));
        plane.line([s.w, [0, 1].map((k) => l * ends[0][k] + (1 - l) * ends[1][k])], { stroke: GREEN, "stroke-width": 3.5 });
        plane.dot(s.w, { fill: GREEN, r: 5 });
        const right = panel(svg, { x: 372, y: 26, width: 260, height: 295, xs: [0, 6.5], ys: [0, 6.5], title: "loss 2 against loss 1", clip: "cm2" });
        right.line(front.map(losses), { stroke: "currentColor", "stroke-opacity": 0.4, "stroke-width": 5 });
        right.line(s.path.map(losses), { stroke: GREEN, "stroke-width": 2 });
        right.dot(losses(s.w), { fill: GREEN, r: 5 });
        const long = Math.hypot(l * p[0] + (1 - l) * q[0], l * p[1] + (1 - l) * q[1]);
        return `round ${s.t}: weight of objective 1 ${l.toFixed(2)}, shortest combination ${long.toFixed(2)} long`;
      },
    });
  };

  /* One parameter, noisy gradients; the averaged surrogate is a parabola. */
  LIVE.ssca = (host) => {
    const f = (x) => 0.12 * x * x + 0.7 * Math.sin(2.1 * x) + 1.2, df = (x) => 0.24 * x + 1.47 * Math.cos(2.1 * x), tau = 0.9;
    player(host, {
      label: "A loss with several valleys, the parabola that the server averages, its minimizer, and the model that follows it.",
      width: 640, height: 330, rounds: 90,
      choices: { label: "Start ", of: [["right", "2.6"], ["left", "-3.4"]] },
      start: (from) => ({ x: Number(from), A: 0, B: 0, scale: 0, noise: random(7), path: [Number(from)] }),
      step: (s) => {
        const rho = (s.t + 1) ** -0.5, gamma = 0.9 * (s.t + 1) ** -0.55;
        const g = df(s.x) + 2.4 * (s.noise() - 0.5), v = f(s.x);
        s.B = (1 - rho) * s.B + rho * (g - 2 * tau * s.x);
        s.A = (1 - rho) * s.A + rho * (v - g * s.x + tau * s.x * s.x);
        s.bar = -s.B / (2 * tau);
        s.x = (1 - gamma) * s.x + gamma * s.bar;
        s.path.push(s.x);
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        const left = panel(svg, { x: 8, y: 26, width: 380, height: 295, xs: [-4.2, 4.2], ys: [0, 4], title: "loss (black), surrogate (orange)", clip: "ss1" });
        left.line(curve(f, [-4.2, 4.2]), { stroke: "currentColor", "stroke-width": 2 });
        if (s.t) {
          left.line(curve((x) => s.A + s.B * x + tau * x * x, [-4.2, 4.2]), { stroke: ORANGE, "stroke-width": 2 });
          left.dot([s.bar, s.A + s.B * s.bar + tau * s.bar * s.bar], { fill: ORANGE });
        }
        left.dot([s.x, f(s.x)], { fill: BLUE, r: 6 });
        const right = panel(svg, { x: 420, y: 26, width: 212, height: 295, xs: [0, 90], ys: [-4.2, 4.2], title: "model by round", clip: "ss2" });
        right.line(s.path.map((v, t) => [t, v]), { stroke: BLUE, "stroke-width": 1.8 });
        return `round ${s.t}: loss ${f(s.x).toFixed(2)}, slope ${df(s.x).toFixed(2)}`;
      },
    });
  };

  /* A slider over the rows of the table in the same figure: step size, violating rounds of both rules, their ratio. */
  const SURPRISE = 4; // the row of the step size at which the printed ratio holds
  LIVE.rates = (host) => {
    const rows = [...host.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((c) => Number(c.textContent.trim())));
    if (!rows.length) return;
    const stage = document.createElement("div");
    stage.className = "live-stage";
    host.prepend(stage);
    const numbers = html(host, "details");
    html(numbers, "summary", { textContent: "The numbers" });
    numbers.append(host.querySelector("table").closest(".pst-scrollable-table-container") ?? host.querySelector("table"));
    const svg = make(stage, "svg", { viewBox: "0 0 640 240", role: "img", "aria-label": "Violating rounds of hard and soft switching at the chosen step size, and their ratio over all step sizes." });
    const bar = html(stage, "div", { className: "live-bar" });
    const slider = html(html(bar, "label", { textContent: "Step size " }), "input", { type: "range", min: 0, max: rows.length - 1, step: 1, value: SURPRISE });
    const said = html(bar, "strong", { className: "live-said" });
    const most = Math.max(...rows.map((row) => Math.max(row[1], row[2]))), tall = Math.max(5, ...rows.map((row) => row[3]));
    const marks = (top, step) => Array.from({ length: Math.floor(top / step) + 1 }, (_, k) => [k * step, `${k * step}`]);
    const draw = () => {
      const [rate, hard, soft, ratio] = rows[Number(slider.value)];
      svg.replaceChildren();
      const left = panel(svg, { x: 30, y: 26, width: 240, height: 180, xs: [0, 3], ys: [0, most * 1.15], title: "violating rounds of 100", clip: "rates1", yt: marks(most, 20) });
      [["hard", hard, BLUE], ["soft", soft, ORANGE]].forEach(([name, n, color], k) => {
        left.line([[0.8 + 1.3 * k, 0], [0.8 + 1.3 * k, n]], { stroke: color, "stroke-width": 56 });
        left.say([0.8 + 1.3 * k, n + most * 0.03], `${name}: ${n}`, { "text-anchor": "middle" });
      });
      const right = panel(svg, { x: 332, y: 26, width: 300, height: 180, xs: [Math.log(rows[0][0]) - 0.3, Math.log(rows.at(-1)[0]) + 0.3], ys: [0, tall * 1.1], title: "hard divided by soft, by step size", clip: "rates2", xt: rows.map((row) => [Math.log(row[0]), `${row[0]}`]), yt: marks(tall, 4) });
      right.line([[-9, 4], [9, 4]], { stroke: RED, "stroke-dasharray": "5 4" });
      right.say([Math.log(rows[0][0]) - 0.2, 4 + tall * 0.03], "printed: about four", { fill: RED });
      right.line(rows.map((row) => [Math.log(row[0]), row[3]]), { stroke: "currentColor", "stroke-width": 1.6 });
      right.dot([Math.log(rate), ratio], { r: 7, fill: GREEN });
      said.textContent = `Step size ${rate}: hard switching violates in ${hard} rounds, soft in ${soft}: ${ratio} times as many.`;
      slider.setAttribute("aria-valuetext", said.textContent);
    };
    slider.addEventListener("input", draw);
    draw();
  };

  const begin = () => document.querySelectorAll("[data-live], .live-rates").forEach((host) => {
    const name = host.dataset.live || "rates";
    if (LIVE[name]) LIVE[name](host);
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
