/* Small pictures that move: a div with data-live="fedsgm", "fedfw", "fedcmoo", "ssca" (computed here, round by round)
   and divs of class live-rates and live-sweeps (numbers of their own tables). No library. Nothing starts by itself for a reader who asked for
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
  const integers = (from, to) => Array.from({ length: to - from + 1 }, (_, k) => [from + k, `${from + k}`]);
  /* Numbers that look random and are the same in every visit. */
  const random = (seed) => () => {
    seed = (seed * 1664525 + 1013904223) % 4294967296;
    return seed / 4294967296;
  };

  /* A select or, with `range`, a slider: `read` gives its value, as text. */
  function knob(bar, { label, of, range, value }, changed) {
    const box = html(bar, "label", { textContent: label });
    if (!range) {
      const select = html(box, "select");
      for (const [text, choice] of of) html(select, "option", { textContent: text, value: choice });
      select.addEventListener("change", changed);
      return { read: () => select.value, enable: (on) => { select.disabled = !on; } };
    }
    const [min, max, step] = range;
    const slider = html(box, "input", { type: "range", min, max, step, value });
    const shown = html(box, "output", { textContent: value });
    slider.addEventListener("input", () => { shown.textContent = slider.value; changed(); });
    return { read: () => slider.value, enable: (on) => { slider.disabled = !on; } };
  }

  /* Play, pause, one round, again, and knobs by their names; `start` takes the values of the knobs. */
  function player(host, { label, width, height, rounds, knobs = {}, start, step, draw, idle = () => {} }) {
    const svg = make(host, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const bar = html(host, "div", { className: "live-bar" });
    const play = html(bar, "button", { type: "button" });
    const one = html(bar, "button", { type: "button", textContent: "One round" });
    const again = html(bar, "button", { type: "button", textContent: "Again" });
    const made = {};
    for (const [name, options] of Object.entries(knobs)) made[name] = knob(bar, options, () => turned());
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
    const reset = () => {
      const values = Object.fromEntries(Object.entries(made).map(([name, { read }]) => [name, read()]));
      state = { t: 0, ...start(values) };
      idle(values, made);
      show();
    };
    const finish = () => {
      while (state.t < rounds) {
        step(state);
        state.t += 1;
      }
      show();
    };
    /* A picture that stands shows the end for the new values; one that moves begins again. */
    const turned = () => {
      const stands = timer === null;
      reset();
      if (stands) finish();
    };
    play.addEventListener("click", () => (timer === null ? go() : stop()));
    one.addEventListener("click", () => { stop(); advance(); });
    again.addEventListener("click", () => { stop(); reset(); });
    stop();
    reset();
    if (still) { finish(); return; }
    /* It starts when its controls are seen, so that one can stop it. */
    new IntersectionObserver((seen, observer) => {
      if (!seen[0].isIntersecting) return;
      observer.disconnect();
      if (timer === null && state.t === 0) go();
    }, { threshold: 1 }).observe(play);
  }

  const LIVE = {};

  /* Two clients with quadratic objectives, a half-plane as the constraint, three local steps a round. */
  LIVE.fedsgm = (host) => {
    const goals = [[2.2, 1.6], [1.2, 2.4]], level = 2.2, lr = 0.06, local = 3;
    const g = (w) => w[0] + w[1] - level;
    const larger = ([a, b]) => (Math.abs(a) >= Math.abs(b) ? [a, 0] : [0, b]);
    const add = (a, b) => [a[0] + b[0], a[1] + b[1]];
    const less = (a, b) => [a[0] - b[0], a[1] - b[1]];
    const update = (s, goal, sigma) => {
      let u = s.w;
      for (let e = 0; e < local; e += 1) u = u.map((v, k) => v - lr * ((1 - sigma) * (v - goal[k]) + sigma));
      return less(u, s.w);
    };
    const message = (s, j, sigma) => {
      const whole = update(s, goals[j], sigma);
      if (s.sent === "both") return whole;
      if (s.sent === "larger") return larger(whole);
      const wanted = add(s.memory[j], whole);
      const sent = larger(wanted);
      s.memory[j] = less(wanted, sent);
      return sent;
    };
    player(host, {
      label: "The path of the model in the plane, towards the best point of two clients, switched at a straight constraint.",
      width: 652, height: 330, rounds: 90,
      knobs: {
        mode: { label: "Switching ", of: [["hard", "hard"], ["soft", "soft"]] },
        beta: { label: "Sharpness ", range: [1, 30, 1], value: 4 },
        sent: { label: "Sent ", of: [["both entries", "both"], ["the larger entry", "larger"], ["the larger, with error feedback", "feedback"]] },
        clients: { label: "A round has ", of: [["both clients", "2"], ["one of them", "1"]] },
      },
      idle: ({ mode }, { beta }) => beta.enable(mode === "soft"),
      start: ({ mode, beta, sent, clients }) => ({
        mode, sent, beta: Number(beta), clients: Number(clients), draw: random(5),
        w: [-0.8, 0.2], memory: [[0, 0], [0, 0]], path: [[-0.8, 0.2]], switched: [],
      }),
      step: (s) => {
        const z = g(s.w);
        const sigma = s.mode === "hard" ? Number(z > 0) : Math.min(1, Math.max(0, 1 + s.beta * z));
        const taking = s.clients === 2 ? [0, 1] : [Number(s.draw() < 0.5)];
        const messages = taking.map((j) => message(s, j, sigma));
        const sum = messages.reduce(add);
        s.w = s.w.map((v, k) => v + sum[k] / messages.length);
        s.path.push(s.w);
        s.switched.push([sigma, g(s.w)]);
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        const color = s.mode === "hard" ? BLUE : ORANGE;
        const steps = [0, 30, 60, 90].map((t) => [t, `${t}`]);
        const plane = panel(svg, { x: 34, y: 26, width: 304, height: 272, xs: [-1.2, 2.8], ys: [-0.4, 3.1], title: "the model's two parameters", clip: "sgm1", xt: integers(-1, 2), yt: integers(0, 3) });
        plane.line([[-3, level + 3], [5, level - 5], [5, 9], [-3, 9]], { fill: RED, "fill-opacity": 0.12 });
        plane.line([[-3, level + 3], [5, level - 5]], { stroke: RED, "stroke-width": 1.5 });
        plane.say([1.3, 2.9], "violated", { fill: RED });
        goals.forEach((a, j) => { plane.dot(a, { fill: "none", stroke: "currentColor" }); plane.say([a[0], a[1] - 0.24], `client ${j + 1}`, { "text-anchor": "middle" }); });
        plane.dot([0.95, 1.25], { r: 6, fill: "none", stroke: GREEN, "stroke-width": 2 });
        plane.say([0, 0.9], "solution", { fill: GREEN });
        plane.line(s.path, { stroke: color, "stroke-width": 2 });
        plane.dot(s.w, { fill: color });
        const right = panel(svg, { x: 400, y: 26, width: 232, height: 100, xs: [0, 90], ys: [-0.1, 1.1], title: "weight of the constraint", clip: "sgm2", yt: integers(0, 1) });
        s.switched.forEach(([v], t) => right.line([[t + 0.5, 0], [t + 0.5, v]], { stroke: color, "stroke-width": 2.4 }));
        const below = panel(svg, { x: 400, y: 170, width: 232, height: 128, xs: [0, 90], ys: [-0.6, 0.25], title: "g by round, violated above 0", clip: "sgm3", xt: steps, yt: [[-0.5, "-0.5"], [0, "0"]] });
        below.line([[0, 0], [90, 0]], { stroke: RED });
        below.line(s.switched.map(([, z], t) => [t + 1, z]), { stroke: color, "stroke-width": 1.6 });
        const over = s.switched.filter(([, z]) => z > 1e-9).length;
        return `round ${s.t}: ${over} of ${s.t} rounds end above the line`;
      },
    });
  };

  /* Two clients whose corners are opposite, in the l1 ball: one common model, and beside it one model for each. */
  LIVE.fedfw = (host) => {
    const goals = [[3, 0.5], [-1, 0.5]], best = [0.75, 0.25], colors = [BLUE, ORANGE];
    const corner = (v) => {
      const k = Math.abs(v[0]) >= Math.abs(v[1]) ? 0 : 1;
      return [0, 1].map((i) => (i === k ? -Math.sign(v[i]) : 0));
    };
    const mean = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    const gradient = (x, goal) => [(x[0] - goal[0]) / 2, (x[1] - goal[1]) / 2];
    const towards = (x, end, eta) => [(1 - eta) * x[0] + eta * end[0], (1 - eta) * x[1] + eta * end[1]];
    const far = (w) => Math.hypot(w[0] - best[0], w[1] - best[1]);
    const origin = [0, 0], start = { w: origin, x: [origin, origin], corners: [], far: [far(origin)] };
    const common = (now, eta) => {
      const corners = goals.map((goal) => corner(gradient(now.w, goal)));
      const w = towards(now.w, mean(corners), eta);
      return { w, x: [w, w], corners, far: [...now.far, far(w)] };
    };
    const each = (now, eta, penalty) => {
      const corners = goals.map((goal, j) => {
        const pull = gradient(now.x[j], goal);
        return corner(pull.map((v, k) => v + penalty * (now.x[j][k] - now.w[k])));
      });
      const x = now.x.map((from, j) => towards(from, corners[j], eta));
      const w = mean(x);
      return { w, x, corners, far: [...now.far, far(w)] };
    };
    const picture = (svg, now, x, title, clip, rings) => {
      const set = panel(svg, { x, y: 26, width: 196, height: 196, xs: [-1.3, 1.3], ys: [-1.3, 1.3], title, clip, xt: integers(-1, 1), yt: x < 50 ? integers(-1, 1) : [] });
      set.line([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]], { stroke: "currentColor", fill: "currentColor", "fill-opacity": 0.06 });
      set.dot(best, { r: 6, fill: "none", stroke: GREEN, "stroke-width": 2 });
      set.say([1.25, 0.85], "optimum", { fill: GREEN, "text-anchor": "end" });
      now.corners.forEach((end, j) => {
        set.line([now.x[j], end], { stroke: colors[j], "stroke-dasharray": "4 3" });
        set.dot(end, { r: 5, fill: colors[j] });
        if (rings) set.dot(now.x[j], { r: 4, fill: "none", stroke: colors[j], "stroke-width": 2 });
      });
      set.dot(now.w, { r: 5, fill: "currentColor" });
    };
    player(host, {
      label: "Two diamonds with the corners to which two clients move and the mean of their models: with one common model it stays in the middle, with FedFW it approaches the optimum. Beside them, both distances to the optimum by round.",
      width: 652, height: 255, rounds: 120,
      knobs: { penalty: { label: "Penalty λ₀ ", range: [0, 1, 0.05], value: 0.5 } },
      start: ({ penalty }) => ({ penalty: Number(penalty), common: start, each: start }),
      step: (s) => {
        const eta = 2 / (s.t + 2);
        s.common = common(s.common, eta);
        s.each = each(s.each, eta, s.penalty * Math.sqrt(s.t + 2));
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        picture(svg, s.common, 30, "average of corners", "fw1", false);
        picture(svg, s.each, 242, "FedFW", "fw2", true);
        const gap = panel(svg, { x: 472, y: 26, width: 160, height: 196, xs: [0, 120], ys: [0, 1.3], title: "distance by round", clip: "fw3", xt: [0, 60, 120].map((t) => [t, `${t}`]), yt: integers(0, 1) });
        gap.line(s.common.far.map((v, t) => [t, v]), { stroke: RED, "stroke-width": 1.8, "stroke-dasharray": "6 3" });
        gap.line(s.each.far.map((v, t) => [t, v]), { stroke: GREEN, "stroke-width": 1.8 });
        return `round ${s.t}: distance to the optimum ${s.common.far.at(-1).toFixed(2)} (dashed), with FedFW ${s.each.far.at(-1).toFixed(2)}`;
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
      width: 652, height: 330, rounds: 80,
      knobs: { from: { label: "Start ", of: [["above", "-0.9,1.7"], ["left", "-1.7,-0.9"], ["right", "1.8,-0.6"]] } },
      start: ({ from }) => {
        const w = from.split(",").map(Number);
        return { w, path: [w] };
      },
      step: (s) => {
        const [p, q] = grads(s.w), l = weigh([p, q]);
        s.w = s.w.map((v, k) => v - 0.06 * (l * p[k] + (1 - l) * q[k]));
        s.path.push(s.w);
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        const plane = panel(svg, { x: 34, y: 26, width: 304, height: 272, xs: [-2.1, 2.2], ys: [-1.6, 2.1], title: "downhill steps, shortest mixture", clip: "cm1", xt: integers(-2, 2), yt: integers(-1, 2) });
        plane.line(front, { stroke: "currentColor", "stroke-opacity": 0.4, "stroke-width": 5 });
        plane.dot(a, { fill: BLUE }); plane.say([a[0] - 0.25, a[1] - 0.3], "best for 1", { fill: BLUE });
        plane.dot(b, { fill: ORANGE }); plane.say([b[0] - 0.1, b[1] + 0.2], "best for 2", { fill: ORANGE });
        plane.line(s.path, { stroke: GREEN, "stroke-width": 2 });
        const [p, q] = grads(s.w), l = weigh([p, q]), ends = [p, q].map((v) => [s.w[0] - 0.35 * v[0], s.w[1] - 0.35 * v[1]]);
        plane.line(ends, { stroke: "currentColor", "stroke-dasharray": "2 3" });
        ends.forEach((e, m) => plane.line([s.w, e], { stroke: [BLUE, ORANGE][m], "stroke-width": 2 }));
        plane.line([s.w, [0, 1].map((k) => l * ends[0][k] + (1 - l) * ends[1][k])], { stroke: GREEN, "stroke-width": 3.5 });
        plane.dot(s.w, { fill: GREEN, r: 5 });
        const right = panel(svg, { x: 384, y: 26, width: 248, height: 272, xs: [0, 6.5], ys: [0, 6.5], title: "loss 2 against loss 1", clip: "cm2", xt: integers(0, 6), yt: integers(0, 6) });
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
      width: 652, height: 330, rounds: 90,
      knobs: {
        from: { label: "Start ", of: [["right", "2.6"], ["left", "-3.4"]] },
        noise: { label: "Noise ", range: [0, 6, 0.4], value: 2.4 },
      },
      start: ({ from, noise }) => ({
        x: Number(from), A: 0, B: 0, level: Number(noise), noise: random(7), path: [Number(from)],
      }),
      step: (s) => {
        const rho = (s.t + 1) ** -0.5, gamma = 0.9 * (s.t + 1) ** -0.55;
        const g = df(s.x) + s.level * (s.noise() - 0.5), v = f(s.x);
        s.B = (1 - rho) * s.B + rho * (g - 2 * tau * s.x);
        s.A = (1 - rho) * s.A + rho * (v - g * s.x + tau * s.x * s.x);
        s.bar = -s.B / (2 * tau);
        s.x = (1 - gamma) * s.x + gamma * s.bar;
        s.path.push(s.x);
      },
      draw: (svg, s) => {
        svg.replaceChildren();
        const left = panel(svg, { x: 30, y: 26, width: 350, height: 272, xs: [-4.2, 4.2], ys: [0, 4], title: "loss (black), surrogate (orange)", clip: "ss1", xt: integers(-4, 4), yt: integers(0, 4) });
        left.line(curve(f, [-4.2, 4.2]), { stroke: "currentColor", "stroke-width": 2 });
        if (s.t) {
          left.line(curve((x) => s.A + s.B * x + tau * x * x, [-4.2, 4.2]), { stroke: ORANGE, "stroke-width": 2 });
          left.dot([s.bar, s.A + s.B * s.bar + tau * s.bar * s.bar], { fill: ORANGE });
        }
        left.dot([s.x, f(s.x)], { fill: BLUE, r: 6 });
        const right = panel(svg, { x: 420, y: 26, width: 212, height: 272, xs: [0, 90], ys: [-4.2, 4.2], title: "model by round", clip: "ss2", xt: [0, 30, 60, 90].map((t) => [t, `${t}`]), yt: [-4, -2, 0, 2, 4].map((v) => [v, `${v}`]) });
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
      said.textContent = `Step size ${rate}: hard switching violates in ${hard} rounds, soft in ${soft}: hard in ${ratio} times as many.`;
      slider.setAttribute("aria-valuetext", said.textContent);
    };
    slider.addEventListener("input", draw);
    draw();
  };

  /* A knob and its values, from the table of the same figure: knob, value, f and g under hard and soft switching. */
  LIVE.sweeps = (host) => {
    const table = host.querySelector("table");
    const rows = [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
    const names = [...new Set(rows.map(([name]) => name))];
    const level = 0.05; // of the constraint, in the study
    const stage = document.createElement("div");
    stage.className = "live-stage";
    host.prepend(stage);
    const numbers = html(host, "details");
    html(numbers, "summary", { textContent: "The numbers" });
    numbers.append(table.closest(".pst-scrollable-table-container") ?? table);
    const svg = make(stage, "svg", { viewBox: "0 0 652 250", role: "img", "aria-label": "Objective and constraint under hard and soft switching over the values of the chosen knob." });
    const bar = html(stage, "div", { className: "live-bar" });
    const select = html(html(bar, "label", { textContent: "Knob " }), "select");
    names.forEach((name) => html(select, "option", { textContent: name, value: name }));
    const slider = html(html(bar, "label", { textContent: "Value " }), "input", { type: "range", min: 0, step: 1 });
    const said = html(bar, "span", { className: "live-said" });
    const part = (shown, at, x, title, clip, first, ticks) => {
      const top = ticks.at(-1)[0];
      const values = shown.map((row, k) => [k, `${row[1]}`]);
      const box = panel(svg, { x, y: 26, width: 264, height: 180, xs: [-0.4, shown.length - 0.6], ys: [0, top], title, clip, xt: values, yt: ticks });
      [BLUE, ORANGE].forEach((stroke, k) => {
        const points = shown.map((row, n) => [n, Number(row[first + 2 * k])]);
        box.line(points, { stroke, "stroke-width": 2, "stroke-dasharray": k ? "6 3" : "" });
        points.forEach((point, n) => box.dot(point, { fill: stroke, r: n === at ? 7 : 3 }));
      });
      return box;
    };
    const draw = () => {
      const shown = rows.filter(([name]) => name === select.value);
      slider.max = shown.length - 1;
      const at = Number(slider.value);
      const [, value, hardF, hardG, softF, softG] = shown[at];
      svg.replaceChildren();
      part(shown, at, 44, "objective f, late rounds", "sweep1", 2, [0, 0.04, 0.08, 0.12].map((v) => [v, `${v}`]));
      const right = part(shown, at, 366, "constraint g, late rounds", "sweep2", 3, [0, 0.02, 0.04, 0.06, 0.08].map((v) => [v, `${v}`]));
      right.line([[-1, level], [9, level]], { stroke: RED, "stroke-dasharray": "2 3" });
      said.textContent = `${select.value} ${value}: f ${hardF} and g ${hardG} under hard switching (line), f ${softF} and g ${softG} under soft switching (dashed).`;
      slider.setAttribute("aria-valuetext", said.textContent);
    };
    const choose = () => {
      const shown = rows.filter(([name]) => name === select.value);
      slider.max = shown.length - 1;
      slider.value = Math.floor(shown.length / 2);
      draw();
    };
    select.addEventListener("change", choose);
    slider.addEventListener("input", draw);
    choose();
  };

  const begin = () => document.querySelectorAll("[data-live], .live-rates, .live-sweeps").forEach((host) => {
    const name = host.dataset.live || (host.matches(".live-rates") ? "rates" : "sweeps");
    if (LIVE[name]) LIVE[name](host);
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
