const choices = read('choices');
for (const [id, values] of Object.entries(choices)) {
  const select = document.getElementById(id);
  for (const [value, label] of values) select.add(new Option(label, value));
}

const spec = read('spec');
const [bars] = spec.layer;
if (innerWidth < 700) {
  bars.encoding.x.scale.domain = [0, 230]; // room for what stands beside the bars
  spec.encoding.y.axis.labelLimit = 160;
}
bars.encoding.color.legend.columns = innerWidth < 700 ? 1 : 4;
vegaEmbed('#board', { ...spec, config, datasets: { board: read('data') } }, options);
