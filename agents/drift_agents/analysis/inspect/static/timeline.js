// One row a cell, one column an episode. Only the rows in sight exist, so that thousands cost nothing.

const ROW = 36, LABEL_GAP = 12;
const DARK = window.matchMedia('(prefers-color-scheme: dark)').matches;
// cividis: its grey rises too; on a dark page it begins brighter than the page
const RAMP = [...(DARK ? [[70, 90, 140], [96, 104, 126]] : [[0, 32, 77], [66, 78, 108]]), [124, 123, 120], [188, 175, 111], [255, 234, 70]];
const PROBE = index.probing, INK = getComputedStyle(document.documentElement).getPropertyValue('--ink');
const FIELDS = [['env', 'environment'], ['schedule', 'schedule'], ['memory', 'memory'], ['verifier', 'verifier'], ['controller', 'controller'], ['team', 'team'], ['policy', 'policy'], ['seed', 'seed']];

function scoreColour(score) {
  const at = Math.max(0, Math.min(1, score)) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
  return `rgb(${RAMP[low].map((part, i) => Math.round(part + (RAMP[low + 1][i] - part) * (at - low)))})`;
}

const way = cell => [['controller', 'direct'], ['team', 'solo']].filter(([field, usual]) => cell[field] !== usual).map(([field]) => `, ${short(cell[field])}`).join('');
/** A part's label as readers see it, without the hash of its file, which `run.json` has. */
const short = label => index.labels[label] ?? label;
const playerName = cell => `${short(cell.memory)}${cell.verifier === 'none' ? '' : ' + ' + short(cell.verifier)}${way(cell)}`;

class Timeline {
  constructor(onChoose) {
    this.box = document.getElementById('timeline');
    this.rows = document.getElementById('rows');
    this.onChoose = onChoose;
    this.items = [];
    this.chosen = null; // {cell, at}
    this.box.addEventListener('scroll', () => this.draw());
    window.addEventListener('resize', () => this.draw());
    this.buildFilters();
    this.buildLegend();
    this.filter();
  }

  buildFilters() {
    const form = document.getElementById('filters');
    this.filters = {};
    for (const [field, title] of FIELDS) {
      const values = [...new Set(index.cells.map(cell => cell[field]))];
      if (field === 'seed') values.sort((a, b) => a - b);
      const select = make('select', { id: `filter-${field}` }, make('option', { value: '' }, 'all'));
      for (const value of values) select.append(make('option', { value }, short(value)));
      select.addEventListener('change', () => this.filter());
      form.append(make('label', {}, title, select));
      this.filters[field] = select;
    }
    form.addEventListener('submit', event => event.preventDefault());
  }

  buildLegend() {
    const ramp = make('span', { class: 'ramp' });
    ramp.style.background = `linear-gradient(90deg, ${RAMP.map(colour => `rgb(${colour})`)})`;
    const items = [[ramp, 'score 0 to 1'], [this.sample('probe'), 'probe steps'], [this.sample('surprise'), 'surprises'],
      [this.sample('realigned'), 'memory rewritten'], [this.sample('phase'), 'a new phase begins']];
    document.getElementById('legend').append(...items.map(([mark, text]) => make('li', {}, mark, text)));
  }

  sample(kind) {
    const canvas = make('canvas', { width: 16, height: 16, 'aria-hidden': 'true' }), pen = canvas.getContext('2d');
    if (kind === 'phase') { pen.fillStyle = INK; pen.fillRect(7, 0, 2, 16); } else drawMark(pen, kind, 8, 8, 1);
    return canvas;
  }

  filter() {
    const wanted = FIELDS.map(([field]) => [field, this.filters[field].value]).filter(([, value]) => value !== '');
    const cells = index.cells.filter(cell => wanted.every(([field, value]) => String(cell[field]) === value));
    this.items = [];
    let schedule = null, episodes = 0;
    for (const cell of cells) {
      if (cell.schedule !== schedule) this.items.push({ head: schedule = cell.schedule, phases: cell.phases });
      this.items.push({ cell });
      episodes += cell.score.length;
    }
    this.longest = Math.max(1, ...cells.map(cell => cell.score.length));
    document.getElementById('count').textContent = `${episodes.toLocaleString('en')} episodes of ${cells.length.toLocaleString('en')} runs (an agent on a schedule with a seed)`;
    this.rows.style.height = `${this.items.length * ROW}px`;
    this.box.scrollTop = 0;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 2);
    const last = Math.min(this.items.length, first + Math.ceil((this.box.clientHeight || 600) / ROW) + 5);
    const focused = document.activeElement && document.activeElement.dataset.cell;
    this.rows.replaceChildren(...this.items.slice(first, last).map((item, i) => this.row(item, (first + i) * ROW)));
    if (focused !== undefined) this.rows.querySelector(`[data-cell="${focused}"]`)?.focus({ preventScroll: true });
  }

  row(item, top) {
    if (item.head !== undefined) {
      const about = index.schedules[item.head] || {};
      const element = make('div', { class: 'head' }, item.head, make('span', {}, item.phases.length > 8 ? `${item.phases.length} phases` : item.phases.join(' → ')), make('span', {}, about.visibility ? `${about.visibility} drift` : ''));
      element.style.top = `${top}px`;
      return element;
    }
    const cell = item.cell, chosen = this.chosen && this.chosen.cell === cell;
    const mean = cell.score.reduce((sum, score) => sum + score, 0) / cell.score.length;
    const label = make('button', { type: 'button', class: 'label', 'data-cell': index.cells.indexOf(cell) },
      `${playerName(cell)} `, make('small', {}, `${cell.policy}, seed ${cell.seed}`));
    label.title = `${playerName(cell)}, ${cell.policy}, seed ${cell.seed}: mean score ${number(mean)}`;
    label.addEventListener('click', () => this.onChoose(cell, chosen ? this.chosen.at : 0));
    const canvas = make('canvas', { role: 'img', 'aria-label': `${cell.score.length} episodes, mean score ${number(mean)}` });
    const element = make('div', { class: chosen ? 'row chosen' : 'row' }, label, canvas);
    element.style.top = `${top}px`;
    this.paint(canvas, cell, chosen ? this.chosen.at : -1);
    const episodeAt = event => Math.min(cell.score.length - 1, Math.floor(event.offsetX / this.columnWidth()));
    canvas.addEventListener('click', event => this.onChoose(cell, episodeAt(event)));
    canvas.addEventListener('mousemove', event => { canvas.title = describeEpisode(cell, episodeAt(event)); });
    return element;
  }

  columnWidth() {
    const label = window.matchMedia('(max-width: 900px)').matches ? 160 : 300;
    return Math.min(22, Math.max(1, (this.box.clientWidth - label - LABEL_GAP) / this.longest));
  }

  paint(canvas, cell, chosen) {
    const width = this.columnWidth(), ratio = window.devicePixelRatio || 1, all = Math.ceil(width * cell.score.length) + 2;
    canvas.width = all * ratio;
    canvas.height = ROW * ratio;
    canvas.style.width = `${all}px`;
    canvas.style.height = `${ROW}px`;
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    const gap = width > 4 ? 1 : 0;
    for (let i = 0; i < cell.score.length; i++) {
      const x = i * width;
      pen.fillStyle = scoreColour(cell.score[i]);
      pen.fillRect(x, 3, Math.max(width - gap, 0.5), 12);
      if (cell.probe_steps[i]) drawMark(pen, 'probe', x + width / 2, 19, Math.min(1, width / 10));
      if (cell.surprises[i]) drawMark(pen, 'surprise', x + width / 2, 25, Math.min(1, width / 10));
      if (cell.realignments[i]) drawMark(pen, 'realigned', x + width / 2, 32, Math.min(1, width / 10));
      if (i && cell.phase[i] !== cell.phase[i - 1]) { pen.fillStyle = INK; pen.fillRect(x - 1, 0, 2, ROW); }
    }
    if (chosen >= 0) { pen.strokeStyle = INK; pen.lineWidth = 2; pen.strokeRect(chosen * width + 0.5, 1, Math.max(width - 1, 3), 16); }
  }

  choose(cell, at) {
    this.chosen = { cell, at };
    const place = this.items.findIndex(item => item.cell === cell);
    const top = place * ROW, view = this.box.clientHeight;
    if (place >= 0 && (top < this.box.scrollTop || top + ROW > this.box.scrollTop + view)) this.box.scrollTop = Math.max(0, top - view / 2);
    this.draw();
  }
}

function drawMark(pen, kind, x, y, size) {
  if (kind === 'probe') { pen.fillStyle = PROBE; pen.fillRect(x - 5 * size, y - 2, 10 * size, 4); }
  if (kind === 'surprise') { pen.fillStyle = INK; pen.beginPath(); pen.arc(x, y, Math.max(1.2, 3.2 * size), 0, 7); pen.fill(); }
  if (kind === 'realigned') { const r = Math.max(1.5, 3.5 * size); pen.fillStyle = INK; pen.beginPath(); pen.moveTo(x, y - r); pen.lineTo(x + r, y + r); pen.lineTo(x - r, y + r); pen.fill(); }
}

function describeEpisode(cell, at) {
  const told = [`episode ${cell.episode[at]}${at < cell.training ? ', training' : ''}`, cell.phases[cell.phase[at]], `tick ${cell.tick[at]}`, `score ${number(cell.score[at])}`, `${cell.steps[at]} steps`,
    `${cell.surprises[at]} surprises`, `${cell.probe_steps[at]} probe steps`, `${cell.realignments[at]} rewritings`];
  return told.join(', ');
}
