const curves = read('curves');
const spec = read('spec');
const choice = name => document.getElementById(name);
const most = 12; // names of drifts that are legible side by side
let view;

function offer(name, values) {
  choice(name).replaceChildren(...[...new Set(values)].map(value => new Option(value)));
  choice(name).parentElement.hidden = choice(name).length < 2;
}

async function draw() {
  const curve = chosen().find(one => one.measure === choice('measure').value);
  const names = curve.lines.map(line => line.name);
  const top = curve.percent ? 100 : Math.max(...curve.lines.flatMap(line => line.high));
  const lines = curve.lines.flatMap(({ name, mean, low, high }) =>
    mean.map((value, at) => ({ episode: at + 1, line: name, mean: value, low: low[at], high: high[at] })));
  const every = Math.ceil(curve.drifts.length / most);
  const drifts = curve.drifts.map(([at, phase], place) => ({ episode: at + 0.5, phase: place % every ? '' : phase }));
  choice('drifts').textContent = every > 1 ? `Dashed lines are the ${drifts.length} drifts; one in ${every} has its name.` : '';
  const [band, line] = spec.layer;
  const color = { ...line.encoding.color, scale: { domain: names, range: curve.lines.map(one => one.colour) } };
  color.legend = { ...color.legend, columns: innerWidth < 700 ? 2 : 6 };
  const strokeDash = { ...line.encoding.strokeDash, scale: { domain: names, range: curve.lines.map(one => one.dash) } };
  const strokeWidth = { ...line.encoding.strokeWidth, scale: { type: 'ordinal', domain: names, range: curve.lines.map(one => one.width) } };
  const [shown, ...others] = line.params;
  const layer = [
    { ...band, encoding: { ...band.encoding, color: { ...band.encoding.color, scale: color.scale } } },
    {
      ...line, encoding: { ...line.encoding, color, strokeDash, strokeWidth },
      params: [{ ...shown, value: names.map(name => ({ line: name })) }, ...others],
    },
    ...spec.layer.slice(2),
  ];
  const counts = curve.percent ? {} : { scale: { domain: [-0.04 * top, 1.04 * top], nice: false }, axis: {} };
  const encoding = { ...spec.encoding, y: { ...spec.encoding.y, ...counts, title: curve.measure } };
  view?.finalize();
  view = await vegaEmbed('#curve', { ...spec, config, layer, encoding, datasets: { lines, drifts } }, options);
}

function chosen() {
  const ofSchedule = curves.filter(one => one.schedule === choice('schedule').value);
  return ofSchedule.filter(one => one.memory === choice('memory').value);
}

function offerMeasures() {
  offer('measure', chosen().map(one => one.measure));
  draw();
}

function offerMemories() {
  offer('memory', curves.filter(one => one.schedule === choice('schedule').value).map(one => one.memory));
  offerMeasures();
}

offer('schedule', curves.map(one => one.schedule));
choice('schedule').addEventListener('change', offerMemories);
choice('memory').addEventListener('change', offerMeasures);
choice('measure').addEventListener('change', draw);
offerMemories();
