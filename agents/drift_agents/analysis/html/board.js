const data = JSON.parse(document.getElementById('data').textContent);
const choices = JSON.parse(document.getElementById('choices').textContent);
for (const [id, values] of Object.entries(choices)) {
  const select = document.getElementById(id);
  for (const [value, label] of values) select.add(new Option(label, value));
}

const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const ink = dark ? '#e8ebee' : '#1b1f24';
const config = {
  font: 'system-ui, "DejaVu Sans", sans-serif', view: { stroke: null }, text: { color: ink, fontSize: 12 },
  axis: { labelColor: ink, titleColor: ink, labelFontSize: 12, gridColor: dark ? '#333b44' : '#dde2e7' },
  legend: { labelColor: ink, labelFontSize: 12 },
};
const spec = JSON.parse(document.getElementById('spec').textContent);
spec.layer[0].encoding.color.legend.columns = innerWidth < 700 ? 2 : 6;
// `ast` evaluates expressions without `eval`, which the page's policy forbids.
vegaEmbed('#board', { ...spec, config, datasets: { board: data } }, { actions: false, ast: true, renderer: 'svg' });
