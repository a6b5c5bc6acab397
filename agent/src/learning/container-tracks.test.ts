import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import { describe, expect, it } from 'vitest';
import { fakeContainer, fakeReporting } from '../node/fake-kernel.ts';
import { type ContainerTracks, createContainerTracks, type Track } from './container-tracks.ts';

const path = (text: string) => text as ExecutablePath;
const exec = { origin: 'exec', count: 1, firstMs: 1, lastMs: 2 } as const;

function trackOf(tracks: ContainerTracks, containerId = 'c1'): Track {
  const track = tracks.of(fakeContainer({ containerId, podUid: `uid-${containerId}` }));
  if (track === undefined) throw new Error('no room');
  return track;
}

describe('tracks of containers', () => {
  it('merge what waits of one path', () => {
    const tracks = createContainerTracks(fakeReporting());
    const track = trackOf(tracks);
    tracks.add(track, path('/a'), exec);
    tracks.add(track, path('/a'), { origin: 'entrypoint', count: 4, firstMs: 0, lastMs: 9 });
    const [execs] = track.waiting.values();
    expect(execs).toEqual({ origins: new Set(['exec', 'entrypoint']), count: 5, firstMs: 0, lastMs: 9 });
    expect(tracks.waiting).toBe(1);
  });

  it('hold so many paths of one container, and so many characters of all, and count the rest', () => {
    const reporting = fakeReporting();
    const tracks = createContainerTracks(reporting);
    const one = trackOf(tracks);
    for (let index = 0; index < 500; index++) tracks.add(one, path(`/${index}`), exec);
    expect([one.waiting.size, reporting.counters.value('learned_paths_lost')]).toEqual([400, 100]);
    const long = 'x'.repeat(16_000);
    for (let container = 0; container < 20; container++) {
      const track = trackOf(tracks, `long-${container}`);
      for (let index = 0; index < 100; index++) tracks.add(track, path(`/${long}${index}`), exec);
    }
    let characters = 0;
    for (const { waiting } of tracks.all()) for (const each of waiting.keys()) characters += each.length;
    expect(characters).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(characters).toBeGreaterThan(15 * 1024 * 1024);
    for (const track of tracks.all()) tracks.clear(track);
    expect(tracks.waiting).toBe(0);
    expect(tracks.add(trackOf(tracks, 'after'), path(`/${long}`), exec)).toBe(true);
  });

  it('keep what waits of a container that ended, and forget it then', () => {
    const tracks = createContainerTracks(fakeReporting());
    const track = trackOf(tracks);
    tracks.add(track, path('/a'), exec);
    tracks.assign(track, 'shop/deploy-web');
    tracks.retain(new Set());
    expect(tracks.ofProposal('shop/deploy-web')).toEqual([track]);
    tracks.drop(track, path('/a'));
    tracks.retain(new Set());
    expect([tracks.size, tracks.ofProposal('shop/deploy-web')]).toEqual([0, []]);
    expect(tracks.keysInUse()).toEqual({ pods: new Set(), proposals: new Set() });
  });

  it('take nothing more of a container that is refused, which is counted once', () => {
    const reporting = fakeReporting();
    const tracks = createContainerTracks(reporting);
    const track = trackOf(tracks);
    tracks.add(track, path('/a'), exec);
    tracks.refuse(track);
    tracks.refuse(track);
    expect(tracks.add(track, path('/b'), exec)).toBe(false);
    expect([tracks.waiting, reporting.counters.value('learned_workloads_refused')]).toEqual([0, 1]);
  });

  it('are so many and no more', () => {
    const tracks = createContainerTracks(fakeReporting());
    for (let index = 0; index < 8_192; index++) trackOf(tracks, `c${index}`);
    expect(tracks.of(fakeContainer({ containerId: 'one more' }))).toBeUndefined();
    expect(trackOf(tracks, 'c7').containerId).toBe('c7');
  });
});
