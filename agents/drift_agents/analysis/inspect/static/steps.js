// One step of one episode: frame, decision, strategy, verdicts, what memory recalled, and the prompt.

const RECALLED = /^- in (.*?) action ("(?:[^"\\]|\\.)*") led to (.*) \((.*?score .*)\)$/;

/** A pane for an episode at a position; `position` equal to the number of steps is its end. */
function drawPane(cell, at, data, position) {
  const number_ = cell.episode[at];
  const pane = make('article', { class: 'pane' });
  pane.append(make('h3', {}, `${playerName(cell)}, seed ${cell.seed}, episode ${number_}`),
    make('p', { class: 'hint' }, `${cell.schedule}: ${describeEpisode(cell, at)}`));
  const episode = data && data.episodes.get(number_);
  if (!episode || !episode.steps.length) {
    pane.append(make('p', { class: 'missing' }, whyMissing(cell, episode)));
    return pane;
  }
  const steps = episode.steps, end = position >= steps.length, step = end ? steps[steps.length - 1] : steps[position];
  const view = {
    state: end ? step.outcome[0] : step.state, truth: step.truth, action: end ? null : step.action, knobs: knobsAt(episode, position),
    before: knobsBefore(data, number_, Math.min(position, steps.length)), trail: [...steps.slice(0, position + 1).map(one => one.state), ...(end ? [step.outcome[0]] : [])],
    earlier: [...data.order.filter(one => one < number_).flatMap(one => data.episodes.get(one).steps), ...steps.slice(0, position)],
  };
  const frame = make('div', { class: 'frame' });
  frame.append(make('p', { class: 'banner' }, `${cell.phases[cell.phase[at]]}, tick ${step.tick}, ${end ? 'the end' : `step ${position + 1} of ${steps.length}`}, score ${number(end ? step.outcome[1] : position ? steps[position - 1].outcome[1] : 0)}`), drawFrame(view));
  const changed = describeKnobs(view.before, view.knobs);
  if (changed) frame.append(make('p', { class: 'hint' }, `since the last phase: ${changed}`));
  const facts = make('div', { class: 'facts' });
  const left = make('div', {}, frame), grid = make('div', { class: 'grid' }, left, facts);
  pane.append(make('p', { class: 'task', tabindex: 0 }, episode.task), grid);
  if (cell.team !== 'solo') frame.append(make('p', { class: 'hint member' }, episode.member ? `played by ${episode.member}` : 'all members decide together'));
  if (end) {
    facts.append(make('h3', {}, 'The episode is over'), decision(step));
    for (const verdict of episode.closing) facts.append(...verdictBlock('After the episode', verdict));
    return pane;
  }
  facts.append(make('h3', {}, 'Decision and outcome'), decision(step));
  for (const verdict of step.checks || []) facts.append(...verdictBlock('Checked before acting', verdict));
  facts.append(...thoughtBlock(step));
  facts.append(...verdictBlock('Verifier', step.verdict));
  const lines = step.prompt.split('\n');
  pane.append(make('h3', {}, `Recalled (${step.retrieved.length} records)`), recalled(lines, step.retrieved));
  pane.append(make('h3', {}, 'Prompt, as the policy saw it'), make('pre', { class: 'prompt', tabindex: 0, 'aria-label': 'prompt' }, step.prompt));
  return pane;
}

function whyMissing(cell, episode) {
  if (episode) return 'This player leaves no steps: it reads no prompt and has no memory.';
  if (cell.kept === 'failures') return 'No steps were kept of this episode: the run kept failures alone (--trace failures).';
  return 'No steps were kept. Run the experiment with --trace all or --trace failures to step through episodes.';
}

function decision(step) {
  const facts = [['action', briefAction(step.action)]];
  if (step.reply !== undefined) facts.push(['answered', step.reply]);
  facts.push(['led to', outcomeText(step.outcome)], ['reward', number(step.reward)]);
  return list(facts, 'decision');
}

let unfolded = false; // whether the making of strategies is shown: the next step keeps it

/** The strategy in force, whether it was made at this step, and the policy's action without one. */
function thoughtBlock(step) {
  if (!step.strategy && !step.thought) return [];
  const thought = step.thought, facts = [];
  if (step.strategy) facts.push(['in force', step.strategy]);
  facts.push(['refreshed', thought ? 'yes, at this step' : 'no, made earlier']);
  if (thought && thought.baseline) facts.push(['action without it', thought.baseline]);
  const block = [make('h3', {}, 'Strategy'), list(facts, 'thought')];
  if (thought) {
    const made = make('details', { class: 'made', ...(unfolded ? { open: '' } : {}) }, make('summary', {}, 'How it was made'));
    made.addEventListener('toggle', () => { unfolded = made.open; });
    for (const [title, told] of [['told to do', thought.instructions], ['made from', thought.question], ['answered', thought.answer]]) {
      made.append(make('h4', {}, title), make('pre', { tabindex: 0, 'aria-label': title }, told));
    }
    block.push(made);
  }
  return block;
}

/** An action in a few words: of a call that writes a file, the path alone. */
function briefAction(text) {
  const call = callOf(text);
  return call && call.tool === 'write_file' ? `write_file(${call.arguments.path})` : text;
}

/** A state in a few words: of a desk, the number of calls and the last answer; of a repository, the files that were written. */
function brief(text) {
  let state = null;
  try { state = JSON.parse(text); } catch { return text; /* a page */ }
  if (state && state.written && 'submitted' in state) {
    const { accepted, log, path, files, ...rest } = state.answer || {};
    const told = accepted !== undefined ? log : path ? `${path} was read` : files ? 'the paths of all files' : Object.entries(rest).map(one => one.join(': ')).join(', ');
    return `#${state.number}, written: ${Object.keys(state.written).join(', ') || 'nothing'}; ${told || 'no answer yet'}`;
  }
  const calls = state && (state.calls || state.made);
  return Array.isArray(calls) && 'answer' in state ? `after ${calls.length} calls: ${JSON.stringify(state.answer)}` : text;
}

function outcomeText([state, score, ended]) {
  return `${brief(state)} (score ${number(score)}${ended ? ', the episode ended' : ''})`;
}

function list(facts, name) {
  const element = make('dl', { class: name });
  for (const [title, value] of facts) element.append(make('dt', {}, title), make('dd', {}, value));
  return element;
}

function verdictBlock(title, verdict) {
  const facts = [];
  if (verdict.about) facts.push(['about', `${brief(verdict.about[0])}, action ${briefAction(verdict.about[1])}`]);
  facts.push(['surprise', verdict.surprise ? 'yes' : 'no']);
  if (verdict.statistic !== undefined) facts.push(['statistic', number(verdict.statistic)]);
  if (verdict.probed) facts.push(['probes', probeText(verdict.probed)]);
  if (verdict.cost) facts.push(['probe cost', `${verdict.cost[0]} steps, ${verdict.cost[1]} resets, ${verdict.cost[2]} falls, ${verdict.cost[3]} purchases`]);
  if (verdict.observed !== undefined) facts.push(['written', `record ${verdict.observed}`]);
  if (verdict.inserted !== undefined) facts.push(['inserted', `summary ${verdict.inserted}${verdict.probed ? `: ${probeText(verdict.probed)}` : ''}`]);
  for (const gone of verdict.removed || []) facts.push(['removed', goneText(gone)]);
  if (verdict.removed_notes) facts.push(['removed notes', verdict.removed_notes.join(', ')]);
  const heading = make('h3', {}, title), flags = make('p', { class: 'flags' });
  if (verdict.surprise) flags.append(make('span', { class: 'flag' }, 'surprise'));
  if (verdict.realigned) flags.append(make('span', { class: 'flag' }, verdict.contradicted ? 'memory rewritten' : 'memory confirmed'));
  return [heading, ...(flags.childNodes.length ? [flags] : []), list(facts, 'verdict')];
}

function probeText(probed) {
  const counts = new Map();
  for (const outcome of probed) { const told = outcomeText(outcome); counts.set(told, (counts.get(told) || 0) + 1); }
  return [...counts].map(([told, count]) => `${count} of ${probed.length}: ${told}`).join('; ');
}

function goneText(gone) {
  if (gone.state === undefined) return `record ${gone.id}`;
  return `record ${gone.id}: ${brief(gone.state)}, action ${briefAction(gone.action)}, led to ${outcomeText(gone.outcome)}, from step ${gone.step}${gone.probes ? ` (summary of ${gone.probes} probes)` : ''}`;
}

/** The records of a prompt as a table; a weight stands there where memory gave one below 1. */
function recalled(lines, ids) {
  const rows = [];
  let where = '';
  for (const line of lines) {
    if (line.startsWith('--- ')) where = line.includes('other states') ? 'elsewhere' : line.includes('Lessons') ? 'lesson' : 'here';
    else if (where === 'lesson' && line.startsWith('- ')) rows.push(['lesson', '', '', line.slice(2), '', '', '', '']);
    else {
      const found = where && RECALLED.exec(line);
      if (!found) continue;
      const detail = /score ([^;]+); seen (once|\S+ times); last at step (-?\d+)(; verified)?(?:; recalled with weight ([^;]+))?/.exec(found[4]) || [];
      const times = detail[2] === 'once' ? '1' : (detail[2] || '').replace(' times', '');
      rows.push([where, brief(found[1]), briefAction(JSON.parse(found[2])), brief(found[3]), times, detail[3] || '', detail[5] || '1', detail[4] ? 'yes' : '']);
    }
  }
  if (!rows.length) return make('p', { class: 'hint' }, 'Memory had nothing to say.');
  const heads = [['where', ''], ['in state', ''], ['action', ''], ['led to', ''], ['seen', 'n'], ['last at step', 'n'], ['weight', 'n'], ['verified', '']];
  const head = make('tr', {}, ...heads.map(([title, kind]) => make('th', { scope: 'col', class: kind }, title)));
  const body = rows.map(row => make('tr', {}, ...row.map((value, i) => make('td', { class: heads[i][1] }, value))));
  const table = make('table', { class: 'recalled' }, make('thead', {}, head), make('tbody', {}, ...body));
  return make('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'recalled records', title: `records ${ids.join(', ')}` }, table);
}

/** Knobs that differ, in a few words; a map says how many of its tiles. */
function describeKnobs(before, now) {
  if (!before) return '';
  const told = [];
  for (const name of Object.keys(now)) {
    const old = before[name], value = now[name];
    if (JSON.stringify(old) === JSON.stringify(value)) continue;
    if (name === 'map') {
      const [a, b] = [old.join(''), value.join('')];
      const same = old.length === value.length && a.length === b.length;
      told.push(same ? `map (${[...a].filter((tile, i) => tile !== b[i]).length} tiles)` : `map (${old.length} to ${value.length} rows)`);
    } else told.push(`${name} ${JSON.stringify(old)} to ${JSON.stringify(value)}`);
  }
  return told.join(', ');
}
