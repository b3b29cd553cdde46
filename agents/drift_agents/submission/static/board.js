'use strict';
const DATA = JSON.parse(document.getElementById('data').textContent);

const COLUMNS = [
  // title, key, value that sorts, text, whether a larger value is better, what it means
  ['agent', 'name', (row) => row.name.toLowerCase(), (row) => row.name, false, 'memory, verifier and further parts; agents that played the same episodes share a row; below, the submissions'],
  ['rank', 'rank', (row) => row.rank, (row) => number(row.rank, 0), false, 'among the agents shown, by the score at equal interactions'],
  ['ranks', 'ranks', (row) => row.reference ? null : row.ranks[0], (row) => row.reference ? '-' : row.ranks.join('-'), false, 'the ranks that 95 % of the resamples give among all agents of this environment and kind'],
  ['at equal\ninteractions', 'equal', (row) => first(row.equal), (row) => interval(row.equal), true, 'percent of the optimum after the first drift, within the interactions of the optimal policy; probes count'],
  ['kept', 'kept', (row) => first(row.kept), (row) => interval(row.kept), true, 'percent of the optimum after the first drift, interquartile mean with 95 % interval'],
  ['gain', 'gain', (row) => first(row.gain), (row) => interval(row.gain), true, 'kept, minus kept without the verifier'],
  ...[
    ['before', 'before', 0, true, 'percent of the optimum before any drift'],
    ['lost', 'lost', 0, false, 'percent of the instances that kept at most half of the optimum'],
    ['probes,\n%', 'probing', 1, false, 'share of all interactions'],
    ['steps', 'interactions', 0, false, 'interactions of an episode, probes included'],
    ['tokens', 'tokens', 0, false, 'tokens of a decision'],
    ['dollars', 'dollars', 4, false, 'price of an episode\'s requests to language models, where the run was given one'],
    ['records', 'records', 0, false, 'size of memory at the end'],
  ].map(([title, key, digits, better, meaning]) => [title, key, (row) => row[key], (row) => number(row[key], digits), better, meaning]),
  ['supervision', 'supervision', (row) => row.supervision, (row) => row.supervision, false, 'what an agent learns beyond its own observations'],
];
const LIMITS = [
  ['Probes, %', 'probing', [0, 5, 10, 25]],
  ['Steps of an episode', 'interactions', [10, 30, 100]],
  ['Tokens of a decision', 'tokens', [500, 2000, 4000]],
  ['Dollars of an episode', 'dollars', [0.001, 0.01, 0.1, 1]],
];

function first(triple) { return triple === null ? null : triple[0]; }
function number(value, digits) {
  return value === null ? '-' : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
function interval(triple) {
  return triple === null ? '-' : `${triple[0].toFixed(1)} [${triple[1].toFixed(0)}, ${triple[2].toFixed(0)}]`;
}
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Rules cost nothing; a language model without a stated price may cost anything.
function isWithin(row, key, most) {
  if (key === 'dollars') return !row.model || (row.dollars !== null && row.dollars <= most);
  return row[key] === null || row[key] <= most;
}

function show(section, views) {
  const state = { environment: 'all', kind: 'all', supervision: 'any', policy: 'any', words: '', limits: {}, sort: 'rank', down: false };
  const rows = views.flatMap((view) => view.rows);
  const filters = section.querySelector('.filters');

  function choose(label, options, change) {
    const select = make('select', {}, ...options.map(([text]) => make('option', {}, text)));
    select.addEventListener('change', () => { change(options[select.selectedIndex][1]); draw(); });
    filters.append(make('label', {}, label, select));
  }
  function chooseOf(label, key, values) {
    choose(label, [...new Set(values)].map((value) => [value, value]), (value) => { state[key] = value; });
  }
  chooseOf('Environment', 'environment', views.map((view) => view.environment));
  chooseOf('Kind of drift', 'kind', views.map((view) => view.kind));
  chooseOf('Supervision', 'supervision', ['any', ...rows.filter((row) => !row.reference).map((row) => row.supervision)]);
  if (rows.some((row) => row.model)) chooseOf('Policy', 'policy', ['any', 'language models', 'rules']);
  for (const [label, key, limits] of LIMITS.filter(([, one]) => one !== 'dollars' || rows.some((row) => row.model))) {
    choose(label, [['any', Infinity], ...limits.map((most) => [`at most ${most.toLocaleString('en')}`, most])], (most) => { state.limits[key] = most; });
  }
  const search = make('input', { type: 'search', placeholder: 'vanilla' });
  search.addEventListener('input', () => { state.words = search.value.trim().toLowerCase(); draw(); });
  filters.append(make('label', {}, 'Name contains', search));

  function isShown(row) {
    return row.reference || (
      (state.supervision === 'any' || row.supervision === state.supervision) &&
      (state.policy === 'any' || row.model === (state.policy === 'language models')) &&
      row.name.toLowerCase().includes(state.words) &&
      Object.entries(state.limits).every(([key, most]) => most === Infinity || isWithin(row, key, most)));
  }

  function drawHead([title, key, , , better, meaning]) {
    const button = make('button', { type: 'button', title: meaning }, title);
    button.addEventListener('click', () => {
      state.down = state.sort === key ? !state.down : better;
      state.sort = key;
      draw();
      section.querySelector(`th[data-key="${key}"] button`).focus();
    });
    const sorted = state.sort !== key ? 'none' : state.down ? 'descending' : 'ascending';
    return make('th', { scope: 'col', 'aria-sort': sorted, 'data-key': key }, button);
  }

  function draw() {
    const view = views.find((one) => one.environment === state.environment && one.kind === state.kind);
    const place = section.querySelector('.live'), remarks = section.querySelector('.remarks');
    if (view === undefined) {
      remarks.textContent = 'The track has no schedule of this environment and kind.';
      place.replaceChildren();
      return;
    }
    const kept = view.rows.filter(isShown), ranked = kept.filter((row) => !row.reference);
    const found = kept.map((row) => ({ ...row, rank: row.reference ? null : 1 + ranked.filter((other) => other.order > row.order).length }));
    remarks.textContent = [`${ranked.length} of ${view.rows.filter((row) => !row.reference).length} rows.`, ...view.remarks].join(' ');
    const value = COLUMNS.find(([, key]) => key === state.sort)[2];
    found.sort((one, other) => {
      const a = value(one), b = value(other);
      if (a === null || b === null) return (a === null) - (b === null);
      return (state.down ? -1 : 1) * (a < b ? -1 : a > b ? 1 : 0);
    });
    const used = COLUMNS.filter(([, key, of]) => key === 'name' || found.some((row) => of(row) !== null));
    const lines = found.map((row) => {
      const cells = used.map(([, , , text]) => make('td', {}, text(row)));
      cells[0].append(make('span', { class: 'entries' }, row.entries.join(', ')));
      return make('tr', row.reference ? { class: 'reference' } : {}, ...cells);
    });
    place.replaceChildren(make('table', {}, make('thead', {}, make('tr', {}, ...used.map(drawHead))), make('tbody', {}, ...lines)));
  }
  draw();
}

document.querySelectorAll('section.track').forEach((section, index) => show(section, DATA[index]));
for (const [title, , , , , meaning] of COLUMNS) {
  document.getElementById('columns').append(make('dt', {}, title.replace('\n', ' ')), make('dd', {}, meaning));
}
