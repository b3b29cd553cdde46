const DATA = JSON.parse(document.getElementById('data').textContent);

const SUPERVISION = 'any supervision';
const COLUMNS = [
  // title, key, value that sorts, text, whether a larger value is better, what it means
  ['agent', 'name', (row) => row.name.toLowerCase(), null, false, 'memory, verifier and further parts'],
  ['rank', 'rank', (row) => row.rank, (row) => row.rank === null ? '-' : String(row.rank), false, 'among the agents shown, by the score at equal interactions'],
  ['ranks', 'ranks', (row) => row.reference ? null : row.ranks[0], (row) => row.reference ? '-' : span(row.ranks), false, 'the ranks that 95 % of the resamples give among all agents of this view'],
  ['at equal\ninteractions', 'equal', (row) => first(row.equal), null, true, 'share of the optimum within the interactions of the optimal policy'],
  ['kept', 'kept', (row) => first(row.kept), null, true, 'share of the optimum after the first drift'],
  ['gain', 'gain', (row) => first(row.gain), (row) => gain(row.gain), true, 'kept, minus kept without the verifier'],
  ['before', 'before', (row) => row.before, (row) => number(row.before, 0), true, 'share of the optimum before any drift'],
  ['lost', 'lost', (row) => row.lost, (row) => number(row.lost, 0), false, 'instances that kept at most half of the optimum, in percent'],
  ['probes,\n%', 'probing', (row) => row.probing, (row) => number(row.probing, 1), false, 'share of all interactions'],
  ['steps', 'steps', (row) => row.steps, (row) => number(row.steps, 0), false, 'interactions of an episode, probes included'],
  ['tokens', 'tokens', (row) => row.tokens, (row) => number(row.tokens, 0), false, 'tokens of a decision'],
  ['dollars', 'dollars', (row) => row.dollars, (row) => number(row.dollars, 4), false, 'price of an episode\'s requests to language models, where the run was given one'],
  ['records', 'records', (row) => row.records, (row) => number(row.records, 0), false, 'size of memory at the end'],
];
const PROBES = [['any share of probes', Infinity], ['no probes', 0], ['at most 5 %', 5], ['at most 10 %', 10], ['at most 25 %', 25]];
const TOKENS = [['any number', Infinity], ['at most 500', 500], ['at most 2,000', 2000], ['at most 4,000', 4000]];
const STEPS = [['any number', Infinity], ['at most 10', 10], ['at most 30', 30], ['at most 100', 100]];
const DOLLARS = [['any price', Infinity], ['at most 0.001', 0.001], ['at most 0.01', 0.01], ['at most 0.1', 0.1], ['at most 1', 1]];
const WORDS = { all: 'all' };

function first(triple) { return triple === null ? null : triple[0]; }
function span(ranks) { return ranks[0] === ranks[1] ? String(ranks[0]) : `${ranks[0]}-${ranks[1]}`; }
function number(value, digits) {
  return value === null ? '-' : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
function gain(triple) {
  if (triple === null) return '-';
  const sign = (value, digits) => (value < 0 ? '' : '+') + value.toFixed(digits);
  const star = triple[1] > 0 || triple[2] < 0 ? '*' : '';
  return `${sign(triple[0], 1)} [${sign(triple[1], 0)}, ${sign(triple[2], 0)}]${star}`;
}
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function choose(label, options, change) {
  const select = make('select', {});
  options.forEach(([text], index) => select.append(make('option', { value: index }, text)));
  select.addEventListener('change', () => change(options[Number(select.value)][1]));
  return make('label', {}, label, select);
}
function bar(triple, most) {
  const place = (value) => `${100 * Math.min(Math.max(value, 0), most) / most}%`;
  const line = make('i', {}), dot = make('b', {});
  line.style.left = place(triple[1]);
  line.style.right = `calc(100% - ${place(triple[2])})`;
  dot.style.left = `calc(${place(triple[0])} - 1px)`;
  return make('div', { class: 'bar', 'aria-hidden': 'true' }, line, dot);
}

function show(section, track) {
  const state = { world: 'all', kind: 'all', supervision: SUPERVISION, probes: Infinity, tokens: Infinity, steps: Infinity, dollars: Infinity, words: '', model: 'any', sort: 'rank', down: false };
  const worlds = [...new Set(track.views.map((view) => view.world))];
  const kinds = [...new Set(track.views.map((view) => view.kind))];
  const rows = track.views.flatMap((view) => view.rows);
  const supervisions = [...new Set(rows.filter((row) => !row.reference).map((row) => row.supervision))];
  const filters = section.querySelector('.filters');
  const set = (key) => (value) => { state[key] = value; draw(); };
  filters.append(
    choose('World', worlds.map((world) => [WORDS[world] || world, world]), set('world')),
    choose('Kind of drift', kinds.map((kind) => [WORDS[kind] || kind, kind]), set('kind')),
    choose('Supervision', [SUPERVISION, ...supervisions].map((one) => [one, one]), set('supervision')),
    choose('Probes', PROBES, set('probes')),
    choose('Steps of an episode', STEPS, set('steps')),
    choose('Tokens of a decision', TOKENS, set('tokens')),
  );
  if (rows.some((row) => row.model)) {
    filters.append(choose('Dollars of an episode', DOLLARS, set('dollars')));
    filters.append(choose('Policy', [['any policy', 'any'], ['language models', 'models'], ['rules', 'rules']], set('model')));
  }
  const search = make('input', { type: 'search', placeholder: 'vanilla' });
  search.addEventListener('input', () => { state.words = search.value.trim().toLowerCase(); draw(); });
  filters.append(make('label', {}, 'Name contains', search));

  // Rules cost nothing; a language model without a stated price may cost anything.
  function affordable(row) {
    return state.dollars === Infinity || !row.model || (row.dollars !== null && row.dollars <= state.dollars);
  }

  function drawMaps(found) {
    const keys = new Set(found.flatMap((row) => row.keys));
    for (const memory of section.querySelectorAll('.maps')) {
      for (const figure of memory.querySelectorAll('figure')) {
        figure.hidden = !figure.dataset.keys.split(' ').some((key) => keys.has(key));
        for (const dot of figure.querySelectorAll('.dot')) {
          const shown = (state.world === 'all' || dot.dataset.world === state.world) && (state.kind === 'all' || dot.dataset.kind === state.kind);
          dot.toggleAttribute('hidden', !shown);
        }
      }
      memory.hidden = !memory.querySelector('figure:not([hidden])');
    }
  }

  function visible(view) {
    const kept = view.rows.filter((row) => row.reference ||
      ((state.supervision === SUPERVISION || row.supervision === state.supervision) &&
       row.probing <= state.probes && (row.tokens === null || row.tokens <= state.tokens) &&
       row.steps <= state.steps && affordable(row) &&
       (state.model === 'any' || row.model === (state.model === 'models')) &&
       (!state.words || row.name.toLowerCase().includes(state.words))));
    const ranked = kept.filter((row) => !row.reference);
    return kept.map((row) => ({ ...row, rank: row.reference ? null : 1 + ranked.filter((other) => other.order > row.order).length }));
  }

  function cell(row, column, most) {
    const [, key, , text] = column;
    if (key === 'name') {
      const more = row.entries.join(', ');
      const chip = make('span', { class: 'chip', title: 'supervision: what an agent learns beyond its own observations' }, row.supervision);
      return make('td', {}, row.name, make('span', { class: 'entries' }, `${more} `, ...(row.supervision === 'none' ? [] : [chip])));
    }
    if (key === 'equal' || key === 'kept') {
      const triple = row[key];
      if (triple === null) return make('td', {}, '-');
      return make('td', {}, `${triple[0].toFixed(1)} [${triple[1].toFixed(0)}, ${triple[2].toFixed(0)}]`, bar(triple, most));
    }
    return make('td', {}, text(row));
  }

  function draw() {
    const view = track.views.find((one) => one.world === state.world && one.kind === state.kind);
    const remarks = section.querySelector('.remarks'), place = section.querySelector('.live');
    if (view === undefined || !view.rows.length) {
      remarks.textContent = view === undefined || !view.reason ? 'The track has no schedule of this world and kind.' : view.reason;
      place.replaceChildren();
      drawMaps([]);
      return;
    }
    const found = visible(view);
    drawMaps(found);
    const agents = found.filter((row) => !row.reference).length;
    remarks.textContent = [
      `${agents} of ${view.rows.filter((row) => !row.reference).length} rows; ${view.instances} instances of ${view.schedules.length} schedule${view.schedules.length === 1 ? '' : 's'}: ${view.schedules.join(', ')}.`,
      ...view.remarks].join(' ');
    const sorter = COLUMNS.find((column) => column[1] === state.sort)[2];
    const sign = state.down ? -1 : 1;
    found.sort((one, other) => {
      const a = sorter(one), b = sorter(other);
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (a < b ? -1 : a > b ? 1 : 0);
    });
    const used = COLUMNS.filter(([, key, value]) => key === 'name' || found.some((row) => value(row) !== null));
    const most = Math.max(100, ...found.flatMap((row) => [row.equal, row.kept]).filter((triple) => triple !== null).map((triple) => triple[2]));
    const heads = used.map(([title, key, , , better, meaning]) => {
      const button = make('button', { type: 'button', title: meaning }, title);
      button.addEventListener('click', () => {
        state.down = state.sort === key ? !state.down : better;
        state.sort = key;
        draw();
        section.querySelector(`th[data-key="${key}"] button`).focus();
      });
      const sorted = state.sort === key ? (state.down ? 'descending' : 'ascending') : 'none';
      return make('th', { scope: 'col', 'aria-sort': sorted, 'data-key': key }, button);
    });
    const lines = found.map((row) => make('tr', row.reference ? { class: 'reference' } : {}, ...used.map((column) => cell(row, column, most))));
    const table = make('table', {}, make('thead', {}, make('tr', {}, ...heads)), make('tbody', {}, ...lines));
    const before = place.querySelector('.scroll');
    const left = before ? before.scrollLeft : 0;
    const scroll = make('div', { class: 'scroll' }, table);
    place.replaceChildren(scroll);
    scroll.scrollLeft = left;
  }
  draw();
}

function tabs(bar, name, parts) {
  const buttons = [...bar.querySelectorAll('button')];
  buttons.forEach((button, index) => {
    button.addEventListener('click', () => {
      buttons.forEach((other) => other.setAttribute('aria-selected', String(other === button)));
      parts.forEach((part) => { part.hidden = part.dataset[name] !== button.dataset[name]; });
    });
    button.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) buttons[(index + step + buttons.length) % buttons.length].focus();
    });
  });
}

const sections = [...document.querySelectorAll('section.track')];
sections.forEach((section, index) => {
  show(section, DATA[index]);
  tabs(section.querySelector('.tabs'), 'tab', [...section.querySelectorAll('.tab')]);
});
const tracks = document.querySelector('.tracks');
if (tracks) tabs(tracks, 'track', sections);
