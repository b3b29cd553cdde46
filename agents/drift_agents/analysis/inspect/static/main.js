// Choosing an episode, stepping through it, and a second one beside it.

const view = { cell: null, at: 0, position: 0, other: null, data: null, otherData: null };
const byId = id => document.getElementById(id);
const isGlove = cell => cell.verifier.split('(')[0] === 'glove';
let asked = 0; // the latest request is shown, whatever the order of the responses

async function choose(cell, at, position = 0) {
  const mine = ++asked;
  const keeps = view.cell && view.cell.schedule === cell.schedule && view.cell.seed === cell.seed;
  if (!keeps) view.other = null;
  view.cell = cell;
  view.at = Math.max(0, Math.min(at, cell.score.length - 1));
  timeline.choose(cell, view.at);
  const loaded = await Promise.all([loadCell(cell), view.other ? loadCell(view.other) : null]);
  if (mine !== asked) return;
  [view.data, view.otherData] = loaded;
  view.position = Math.max(0, Math.min(position, length()));
  fillOthers();
  draw();
}

const stepsOf = (cell, at, data) => { const episode = data && cell && data.episodes.get(cell.episode[at]); return episode ? episode.steps.length : 0; };
const length = () => Math.max(stepsOf(view.cell, view.at, view.data), stepsOf(view.other, view.at, view.otherData));

function draw() {
  byId('stepper').hidden = false;
  const panes = byId('panes'), scrolled = [...panes.querySelectorAll('pre, .scroll')].map(element => element.scrollTop);
  panes.classList.toggle('two', view.other !== null);
  panes.replaceChildren(drawPane(view.cell, view.at, view.data, view.position));
  if (view.other) panes.append(view.at < view.other.score.length ? drawPane(view.other, view.at, view.otherData, view.position) : make('article', { class: 'pane' }, 'This run has no such episode.'));
  [...panes.querySelectorAll('pre, .scroll')].forEach((element, i) => { element.scrollTop = scrolled[i] || 0; });
  const slider = byId('position'), most = length();
  slider.max = most;
  slider.value = view.position;
  slider.disabled = !most;
  byId('position-text').textContent = most ? (view.position < most ? `${view.position + 1} of ${most}` : 'the end') : 'no steps';
  byId('previous-step').disabled = view.position === 0;
  byId('next-step').disabled = view.position >= most;
  byId('previous-episode').disabled = view.at === 0;
  byId('next-episode').disabled = view.at >= view.cell.score.length - 1;
  history.replaceState(null, '', `#${index.cells.indexOf(view.cell)}/${view.cell.episode[view.at]}/${view.position}`);
}

/** The runs that can be compared with the chosen one: same schedule, same seed. */
function fillOthers() {
  const select = byId('other');
  const rivals = index.cells.filter(cell => cell !== view.cell && cell.schedule === view.cell.schedule && cell.seed === view.cell.seed);
  select.replaceChildren(make('option', { value: '' }, 'none'), ...rivals.map(cell => make('option', { value: index.cells.indexOf(cell) }, `${playerName(cell)} (${cell.policy})`)));
  select.value = view.other ? String(index.cells.indexOf(view.other)) : '';
}

/** The same agent with the same seed with GLOVE, or without it. */
function counterpart(cell) {
  const same = other => ['schedule', 'memory', 'controller', 'team', 'policy', 'seed'].every(field => other[field] === cell[field]);
  return index.cells.find(other => same(other) && (isGlove(cell) ? other.verifier === 'none' : isGlove(other))) || null;
}

function beside(cell) {
  view.other = cell;
  choose(view.cell, view.at, view.position);
}

function step(by) {
  view.position = Math.max(0, Math.min(view.position + by, length()));
  draw();
}

const timeline = new Timeline((cell, at) => choose(cell, at));
byId('about').textContent = Object.entries(index.versions).map(pair => pair.join(' ')).join(', ');
byId('position').addEventListener('input', event => step(Number(event.target.value) - view.position));
byId('previous-step').addEventListener('click', () => step(-1));
byId('next-step').addEventListener('click', () => step(1));
byId('previous-episode').addEventListener('click', () => choose(view.cell, view.at - 1));
byId('next-episode').addEventListener('click', () => choose(view.cell, view.at + 1));
byId('other').addEventListener('change', event => beside(event.target.value === '' ? null : index.cells[Number(event.target.value)]));
document.addEventListener('keydown', event => {
  if (!view.cell || event.ctrlKey || event.altKey || event.metaKey || /^(SELECT|TEXTAREA)$/.test(event.target.tagName) || event.target.type === 'range') return;
  const actions = {
    ArrowLeft: () => event.shiftKey ? choose(view.cell, view.at - 1) : step(-1),
    ArrowRight: () => event.shiftKey ? choose(view.cell, view.at + 1) : step(1),
    Home: () => event.shiftKey ? choose(view.cell, 0) : step(-Infinity),
    End: () => event.shiftKey ? choose(view.cell, view.cell.score.length - 1) : step(Infinity),
    g: () => beside(view.other ? null : counterpart(view.cell)),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
});

/** What a link names: #cell/episode/position. */
function openLink() {
  if (!location.hash) return;
  const [cell, episode, position] = location.hash.slice(1).split('/').map(Number);
  if (!index.cells[cell]) return;
  const at = index.cells[cell].episode.indexOf(episode || 0);
  choose(index.cells[cell], Math.max(at, 0), position || 0);
}
window.addEventListener('hashchange', openLink);
openLink();
document.documentElement.dataset.ready = 'yes';
