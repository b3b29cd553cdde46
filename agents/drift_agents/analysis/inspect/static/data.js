// What the page knows: the index of all episodes at once, the steps of a cell when they are asked for.

const index = JSON.parse(document.getElementById('index').textContent);
const unpacked = new Map(); // chunk -> promise of its episodes; the last few are kept
const KEPT_CHUNKS = 12;

/** The bytes of a file with the steps of a cell, still compressed. */
async function packedBytes(chunk) {
  if (index.served) {
    const answer = await fetch(`chunk/${chunk}`);
    if (!answer.ok) throw new Error(`the steps could not be fetched: ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  }
  const text = atob(document.getElementById(`chunk-${chunk}`).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The episodes of a cell by number, and their order; null where no steps were kept. */
function loadCell(cell) {
  if (cell.chunk === null) return Promise.resolve(null);
  let promise = unpacked.get(cell.chunk);
  if (!promise) promise = unpack(cell.chunk);
  unpacked.delete(cell.chunk); // the one that was asked for last goes last
  unpacked.set(cell.chunk, promise);
  if (unpacked.size > KEPT_CHUNKS) unpacked.delete(unpacked.keys().next().value);
  return promise;
}

async function unpack(chunk) {
  const stream = new Blob([await packedBytes(chunk)]).stream().pipeThrough(new DecompressionStream('gzip'));
  const lines = (await new Response(stream).text()).split('\n').slice(1, -1);
  const episodes = new Map(), order = [];
  for (const line of lines) {
    const episode = JSON.parse(line);
    episodes.set(episode.episode, episode);
    order.push(episode.episode);
  }
  return { episodes, order };
}

/** What the knobs were before they became what they are: the last others that were seen in the cell. */
function knobsBefore(data, number, position) {
  const key = JSON.stringify(knobsAt(data.episodes.get(number), position));
  for (let at = data.order.indexOf(number); at >= 0; at--) {
    const episode = data.episodes.get(data.order[at]);
    const seen = episode.steps.map(step => step.knobs);
    if (at === data.order.indexOf(number)) seen.length = Math.min(seen.length, position);
    seen.unshift(episode.knobs_at_start);
    for (let i = seen.length - 1; i >= 0; i--) if (JSON.stringify(seen[i]) !== key) return seen[i];
  }
  return null;
}

function knobsAt(episode, position) {
  const steps = episode.steps;
  if (!steps.length) return episode.knobs_at_start;
  return steps[Math.min(position, steps.length - 1)].knobs;
}

/** An element with attributes, texts and children; texts are never read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const number = value => value === null || value === undefined ? '-' : String(Math.round(value * 1e4) / 1e4);
