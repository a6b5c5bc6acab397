import { expect, it } from 'vitest';
import { executablePathFromBytes } from './executable-path.ts';
import { MAX_LEARNED_PATHS } from './limits.ts';
import { type ObservationBatch, proposalStatus } from './observation-status.ts';
import type { Observation, WorkloadPolicyProposal } from './workload-policy-proposal.ts';

const NOW = '2026-01-31T12:00:00Z';
const LATER = '2026-01-31T13:00:00Z';

function pathOf(text: string) {
  const parsed = executablePathFromBytes(new TextEncoder().encode(text));
  if (!parsed.ok) throw new Error(text);
  return parsed.value;
}
const observation = (path: string, changed: Partial<Observation> = {}): Observation => ({
  containerName: 'app',
  executablePath: pathOf(path),
  count: 1,
  firstSeen: NOW,
  lastSeen: NOW,
  origins: ['entrypoint'],
  pods: ['web-1'],
  nodes: ['n1'],
  ...changed,
});
const spec = (...paths: string[]): WorkloadPolicyProposal['spec'] => ({
  rulesByContainer: new Map([
    ['app', { executables: { allowed: paths.map(pathOf), otherMountNamespaces: 'deny' } }],
  ]),
});
const batch = (nodeName: string, ...entries: [number, Observation, number?][]): ObservationBatch => ({
  nodeName,
  incarnation: 'i',
  entries: entries.map(([sequence, each, previousCount = 0]) => ({
    sequence,
    observation: each,
    previousCount,
  })),
});

it('adds what is new, once', () => {
  const first = proposalStatus(
    { spec: spec('/a') },
    [
      batch(
        'n1',
        [1, observation('/a', { count: 2 })],
        [2, observation('/a', { count: 5, lastSeen: LATER })],
      ),
    ],
    NOW,
  );
  // Each entry names what the one before counted; these do not, so that both count whole.
  expect(first.observations).toMatchObject([{ count: 7, firstSeen: NOW, lastSeen: LATER }]);
  const second = proposalStatus(
    { spec: spec('/a'), status: first },
    [
      batch('n1', [2, observation('/a', { count: 5 })], [3, observation('/a', { count: 6 }), 5]),
      batch('n2', [1, observation('/a', { nodes: ['n2'], pods: ['web-2'], origins: ['exec'] })]),
    ],
    NOW,
  );
  expect(second.observations).toMatchObject([
    { count: 9, pods: ['web-1', 'web-2'], nodes: ['n1', 'n2'], origins: ['entrypoint', 'exec'] },
  ]);
  expect(second.mergedFrom).toEqual([
    { nodeName: 'n1', incarnation: 'i', sequence: 3 },
    { nodeName: 'n2', incarnation: 'i', sequence: 1 },
  ]);
});

it('a path that the rules have no room for makes the proposal full, and gives way to those that are listed', () => {
  const listed = Array.from({ length: MAX_LEARNED_PATHS }, (_, index) => `/bin/${index}`);
  const full = { spec: spec(...listed) };
  const status = proposalStatus(full, [batch('n1', [1, observation('/more')])], NOW);
  expect(status.conditions).toMatchObject([{ type: 'Full', status: 'True', lastTransitionTime: NOW }]);
  expect(status.observations.length).toBe(1);
  const entries = listed.map((path, index): [number, Observation] => [index + 2, observation(path)]);
  const all = proposalStatus({ ...full, status }, [batch('n1', ...entries)], LATER);
  expect(all.observations.map(({ executablePath }) => executablePath)).toEqual(listed);
  expect(all.conditions).toEqual(status.conditions);
});

it('a path that the rules will have is not one that there is no room for', () => {
  const status = proposalStatus({ spec: spec() }, [batch('n1', [1, observation('/a')])], NOW);
  expect(status.conditions).toEqual([]);
  expect(status.observations).toEqual([observation('/a')]);
});
