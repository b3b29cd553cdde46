// What the environment looked like at a step, drawn from its state and its knobs.

const SVG = 'http://www.w3.org/2000/svg';

function shape(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The picture for a step: {state, truth, action (null at the end), knobs, before, trail, actions, earlier}. */
function drawFrame(view) {
  let state = null;
  try { state = JSON.parse(view.state); } catch { /* a page: shown as text */ }
  if (state && Array.isArray(state.cur_pos) && Array.isArray(view.knobs.map)) return drawLake(state, view);
  if (state && typeof state.position === 'number' && 'goal_position' in view.knobs) return drawCar(state, view);
  const calls = state && (state.calls || state.made);
  if (Array.isArray(calls) && 'answer' in state) return drawDesk({ records: {}, request: (state.requests || []).at(-1), ...state, calls }, view);
  if (state && state.written && 'submitted' in state) return drawRepository(state, view);
  if (state && Array.isArray(state.heard) && state.question) return drawFacts(state, view);
  return drawPage(view);
}

const TILE = 60;
const MOVES = { 0: [0, -1], 1: [1, 0], 2: [0, 1], 3: [-1, 0] };

function drawLake(state, view) {
  const map = view.knobs.map, old = view.before && view.before.map;
  const rows = map.length, columns = map[0].length;
  const same = old && old.length === rows && old[0].length === columns;
  const picture = shape('svg', { viewBox: `0 0 ${columns * TILE} ${rows * TILE}`, role: 'img', 'aria-label': `lake, agent at row ${state.cur_pos[0]}, column ${state.cur_pos[1]}` });
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
    const tile = map[r][c], was = same ? old[r][c] : tile;
    const x = c * TILE, y = r * TILE;
    picture.append(shape('rect', { x: x + 1, y: y + 1, width: TILE - 2, height: TILE - 2, fill: tile === 'G' ? '#ffe27a' : '#dcebf5' }));
    if (tile === 'H') picture.append(shape('circle', { cx: x + 30, cy: y + 30, r: 22, fill: '#12283d' }));
    else if (was === 'H') picture.append(shape('circle', { cx: x + 30, cy: y + 30, r: 22, fill: 'none', stroke: '#4b5560', 'stroke-width': 2, 'stroke-dasharray': '4 4', class: 'ghost' }));
    if (tile === 'G') picture.append(label(x + 30, y + 28, 'goal', 13), label(x + 30, y + 46, goalReward(view.knobs, r, c), 13));
    if (tile === 'S') picture.append(label(x + 30, y + 54, 'start', 11));
    if (tile !== was) picture.append(shape('rect', { x: x + 3, y: y + 3, width: TILE - 6, height: TILE - 6, fill: 'none', stroke: '#9c3d00', 'stroke-width': 3, class: 'changed' }));
  }
  const centre = ([r, c]) => [c * TILE + 30, r * TILE + 30];
  const places = view.trail.map(positionOf).filter(Array.isArray);
  if (places.length > 1) picture.append(shape('polyline', { points: places.map(place => centre(place).join()).join(' '), fill: 'none', stroke: '#9c3d00', 'stroke-width': 3, 'stroke-opacity': 0.75, class: 'trail' }));
  const [x, y] = centre(state.cur_pos);
  picture.append(shape('circle', { cx: x, cy: y, r: 12, fill: '#ffffff', stroke: '#9c3d00', 'stroke-width': 4, class: 'agent' }));
  const move = MOVES[view.action];
  if (move) picture.append(arrow(x + move[1] * 12, y + move[0] * 12, x + move[1] * 34, y + move[0] * 34));
  return picture;
}

function positionOf(text) {
  try { return JSON.parse(text).cur_pos; } catch { return null; /* a text that is no state of the lake */ }
}

function goalReward(knobs, r, c) {
  const rewards = knobs.goal_rewards || {};
  return String(rewards[`${r},${c}`] ?? 1);
}

function label(x, y, text, size, fill = '#1b1f24') {
  return shape('text', { x, y, 'text-anchor': 'middle', 'font-size': size, 'font-family': 'sans-serif', fill }, text);
}

function arrow(x1, y1, x2, y2, colour = '#0b3c6f') {
  const angle = Math.atan2(y2 - y1, x2 - x1), tip = spread => `${x2 - 10 * Math.cos(angle + spread)},${y2 - 10 * Math.sin(angle + spread)}`;
  return shape('g', { class: 'arrow' }, shape('line', { x1, y1, x2, y2, stroke: colour, 'stroke-width': 4 }),
    shape('polygon', { points: `${x2},${y2} ${tip(0.5)} ${tip(-0.5)}`, fill: colour }));
}

function drawCar(state, view) {
  const width = 600, height = 340, left = -1.2, right = 0.6;
  const px = x => (x - left) / (right - left) * width, py = x => height - 50 - (Math.sin(3 * x) * 0.45 + 0.55) * 230;
  const picture = shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `car at ${number(state.position)}, velocity ${number(state.velocity)}` });
  const points = [];
  for (let i = 0; i <= 120; i++) { const x = left + (right - left) * i / 120; points.push(`${px(x)},${py(x)}`); }
  picture.append(shape('rect', { x: 0, y: 0, width, height, fill: '#f3f5f7' }));
  picture.append(shape('polygon', { points: `0,${height} ${points.join(' ')} ${width},${height}`, fill: '#c7d0d9', stroke: '#4b5560', 'stroke-width': 2 }));
  flag(picture, px(view.knobs.goal_position), py(view.knobs.goal_position), false);
  const old = view.before && view.before.goal_position;
  if (typeof old === 'number' && old !== view.knobs.goal_position) flag(picture, px(old), py(old), true);
  const places = view.trail.map(text => JSON.parse(text).position);
  if (places.length > 1) picture.append(shape('polyline', { points: places.slice(-60).map(x => `${px(x)},${py(x) - 9}`).join(' '), fill: 'none', stroke: '#9c3d00', 'stroke-width': 3, 'stroke-opacity': 0.75, class: 'trail' }));
  const x = px(state.position), y = py(state.position) - 12;
  picture.append(shape('circle', { cx: x, cy: y, r: 12, fill: '#ffffff', stroke: '#9c3d00', 'stroke-width': 4, class: 'agent' }));
  const strength = view.knobs.force ?? view.knobs.power;
  if (view.action !== null && typeof strength === 'number') {
    const wanted = 'force' in view.knobs ? Number(view.action) - 1 : Number(view.action), push = wanted * Math.sign(strength);
    if (push) picture.append(arrow(x + push * 14, y, x + push * 62, y));
    picture.append(label(width / 2, height - 14, push ? `engine pushes ${push > 0 ? 'right' : 'left'} with ${number(Math.abs(wanted * strength) * 1000)} / 1000` : 'engine is off', 16));
  }
  return picture;
}

function flag(picture, x, y, ghost) {
  const colour = ghost ? '#4b5560' : '#1b1f24', dash = ghost ? '4 4' : 'none';
  picture.append(shape('line', { x1: x, y1: y, x2: x, y2: y - 50, stroke: colour, 'stroke-width': 3, 'stroke-dasharray': dash, class: ghost ? 'ghost' : 'goal' }));
  if (!ghost) picture.append(shape('polygon', { points: `${x},${y - 50} ${x + 24},${y - 42} ${x},${y - 34}`, fill: '#ffd23f', stroke: colour }));
}

/** An address without its escapes; as it is where it was cut within one. */
function readable(address) {
  try { return decodeURIComponent(address.replaceAll('+', ' ')); } catch { return address; }
}

/** A page as it was, its parts on lines of their own; what was clicked is marked. */
function drawPage(view) {
  let text = view.state, address = '';
  try {
    const state = JSON.parse(text);
    if (typeof state === 'string') text = state;
    else if (typeof state.html === 'string') { text = state.html; address = state.url || ''; }
  } catch { /* plain text */ }
  const clicked = /^(?:click\[(.*)\]|(search)\[.*\])$/.exec(view.action || '');
  const wanted = clicked && (clicked[1] ?? clicked[2]).toLowerCase();
  const page = make('div', { class: 'page', role: 'group', 'aria-label': 'page', tabindex: 0 });
  if (address) page.append(make('p', { class: 'address' }, readable(address)));
  for (const part of text.split(/\s*\[SEP\]\s*|\n/)) {
    if (!part) continue;
    const hit = part.toLowerCase() === wanted;
    page.append(make('p', hit ? { class: 'done' } : {}, part));
  }
  return page;
}

/** A service desk: the calls so far beside the records that they have shown, and what a drift has changed. */
function drawDesk(state, view) {
  const desk = make('div', { class: 'desk', role: 'group', 'aria-label': 'service desk', tabindex: 0 });
  const calls = make('ol', { class: 'calls' }, ...state.calls.map(call => make('li', {}, callText(call))));
  const next = callOf(view.action);
  if (next) calls.append(make('li', { class: 'done' }, callText(next)));
  const left = make('section', {}, make('h4', {}, 'Calls'), calls, make('h4', {}, 'Last answer'));
  left.append(make('p', { class: state.answer && state.answer.error ? 'refused' : '' }, JSON.stringify(state.answer)));
  const right = make('section', {}, make('h4', {}, 'Database, as it was shown'));
  const old = recordsBefore(view.trail);
  for (const [id, fields] of Object.entries(state.records)) right.append(recordTable(id, fields, old[id]));
  if (!Object.keys(state.records).length) right.append(make('p', { class: 'hint' }, 'Nothing was looked up.'));
  desk.append(make('p', { class: 'request' }, state.request));
  for (const text of describeDrift(view)) desk.append(make('p', { class: 'drifted' }, text));
  desk.append(make('div', { class: 'columns' }, left, right));
  return desk;
}

/** An issue of a repository: the diff of what was written, the log of the checks, and what a drift has changed. */
function drawRepository(state, view) {
  const drawn = make('div', { class: 'desk', role: 'group', 'aria-label': 'repository', tabindex: 0 });
  drawn.append(make('p', { class: 'request' }, `#${state.number} ${state.issue}`));
  for (const text of describeDrift(view)) drawn.append(make('p', { class: 'drifted' }, text));
  const known = textsBefore(view.trail, state.written);
  for (const [path, text] of Object.entries(state.written)) drawn.append(make('h4', {}, text === null ? `${path} (deleted)` : path), diff(known.get(path), text ?? ''));
  if (!Object.keys(state.written).length) drawn.append(make('p', { class: 'hint' }, 'Nothing was written.'));
  const answer = state.answer || {}, read = answer.text ?? (answer.files || []).join('\n');
  if (read) drawn.append(make('h4', {}, `Read: ${answer.path ?? 'the paths of all files'}`), make('pre', {}, read));
  if (state.log) drawn.append(make('h4', {}, `Log of the checks, ${state.corrections} corrections, ${state.reruns} reruns`), make('pre', { class: state.log.startsWith('checks passed') ? 'log' : 'log refused' }, state.log));
  return drawn;
}

/** Earlier texts of written files that differ from the present ones, where they were read or submitted in this episode. */
function textsBefore(trail, written) {
  const seen = new Map();
  for (const state of trail.map(text => JSON.parse(text))) {
    const { path, text } = state.answer || {};
    if (text !== undefined && !(path in state.written)) seen.set(path, text);
    for (const [one, content] of Object.entries(state.submitted || {})) if (content !== written[one]) seen.set(one, content ?? '');
  }
  return seen;
}

/** Lines that are new, and those of an earlier text that are gone, each with its sign; order within the text counts not. */
function diff(before, after) {
  const old = (before ?? '').split('\n').filter(Boolean), now = after.split('\n').filter(Boolean), block = make('pre', { class: 'diff' });
  for (const line of old) if (!now.includes(line)) block.append(make('span', { class: 'refused' }, `- ${line}\n`));
  for (const line of now) block.append(old.includes(line) ? `  ${line}\n` : make('span', { class: before === undefined ? '' : 'done' }, `+ ${line}\n`));
  return block;
}

/** The knobs that a drift has changed, in words. */
function describeDrift(view) {
  const drifted = Object.entries(view.knobs).filter(([name, value]) => view.before && JSON.stringify(view.before[name]) !== JSON.stringify(value));
  return drifted.map(([name, value]) => `drift: ${name} is now ${JSON.stringify(value)}, was ${JSON.stringify(view.before[name])}`);
}

const RENAMED = { workspace: 'office', orthodontist: 'dentist', cubby: 'locker', intolerance: 'allergy', supervisor: 'manager', residence: 'address' };

/** The fact that a sentence or a question is about, by the first name of its attribute. */
function factOf(sentence) {
  const found = /\b([A-Z]\w+)'s (\w+)/.exec(sentence);
  return found && `${found[1]}'s ${RENAMED[found[2]] ?? found[2]}`;
}

/** A day's question, and the time line of its fact: what was said, answered and true on each day so far. */
function drawFacts(state, view) {
  const fact = factOf(state.question), days = new Map();
  const row = day => days.get(day) ?? days.set(day, { said: [], answer: '', truth: '', right: null }).get(day);
  const hear = shown => { for (const one of shown.heard) if (factOf(one) === fact && !row(shown.day).said.includes(one)) row(shown.day).said.push(one); };
  for (const { state: text, action, outcome, truth } of view.earlier) {
    const shown = JSON.parse(text);
    hear(shown);
    if (factOf(shown.question) !== fact) continue;
    row(shown.day).truth = truth ?? '';
    if (action === 'ask') hear(JSON.parse(outcome[0]));
    else Object.assign(row(shown.day), { answer: action, right: outcome[1] > 0 });
  }
  hear(state);
  row(state.day).truth = view.truth ?? '';
  const body = [...days].map(([day, { said, answer, truth, right }]) => make('tr', right === false ? { class: 'written' } : {},
    make('th', { scope: 'row' }, `day ${day}`), make('td', {}, said.join(' ')), make('td', {}, answer), make('td', {}, truth), make('td', {}, right === null ? '' : right ? 'right' : 'wrong')));
  const head = make('tr', {}, ...['', 'heard', 'answered', 'true', ''].map(name => make('th', {}, name)));
  const drawn = make('div', { class: 'desk', role: 'group', 'aria-label': `time line of ${fact}`, tabindex: 0 });
  drawn.append(make('p', { class: 'request' }, `Day ${state.day}. ${state.question}`),
    make('table', { class: 'record' }, make('caption', {}, `What was heard, answered and true of ${fact}`), make('thead', {}, head), make('tbody', {}, ...body)));
  return drawn;
}

function callOf(action) {
  try { const call = JSON.parse(action); return call && call.tool ? call : null; } catch { return null; /* no call */ }
}

function callText(call) {
  const given = Object.entries(call.arguments || {}).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `${call.tool}(${given.join(', ')})`;
}

/** What each record looked like when it was first shown in this episode. */
function recordsBefore(trail) {
  const first = {};
  for (const text of trail) {
    const records = JSON.parse(text).records || {};
    for (const [id, fields] of Object.entries(records)) first[id] = { ...fields, ...first[id] };
  }
  return first;
}

/** A record with its fields; those that differ from what was shown first are marked. */
function recordTable(id, fields, old) {
  const body = Object.entries(fields).map(([name, value]) => {
    const told = JSON.stringify(value), isNew = old && name in old && JSON.stringify(old[name]) !== told;
    return make('tr', isNew ? { class: 'written' } : {}, make('th', { scope: 'row' }, name), make('td', {}, told));
  });
  return make('table', { class: 'record' }, make('caption', {}, id), make('tbody', {}, ...body));
}
