import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Narration, narration } from '../demo/narration.ts';
import { noteState } from './diagnosis.ts';
import { pageSections, playSection } from './page-player.ts';
import { startWholeCluster, type WholeCluster } from './whole-cluster.ts';

const SECTIONS = await pageSections('quick-start.md');
const TROUBLE = await pageSections('troubleshooting.md');
/** The last one of the quick start takes everything away. */
const END = SECTIONS.length - 1;
const PLAYED = [...SECTIONS.slice(0, END), ...TROUBLE, ...SECTIONS.slice(END)];

let cluster: WholeCluster;
let tell: Narration;
beforeAll(async () => {
  cluster = await startWholeCluster('default');
  tell = narration(() => undefined);
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await noteState(cluster, task.name);
});
afterAll(async () => {
  await cluster.stop();
});

it('has something to play', () => {
  expect(SECTIONS.length).toBeGreaterThan(5);
  expect(TROUBLE.length).toBeGreaterThan(3);
});

it.each(PLAYED)('$title', async (section) => {
  await playSection(cluster, section, tell);
});
