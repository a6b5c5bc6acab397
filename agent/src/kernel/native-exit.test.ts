import { execFile } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

import { describe, expect, test } from 'vitest';

const NATIVE_URL = new URL('native.ts', import.meta.url).href;
const OBJECTS_URL = new URL('native-test-objects.ts', import.meta.url).href;

const WITH_NATIVE = `
  const { loadNative } = await import(${JSON.stringify(NATIVE_URL)});
  const { hashMap, numberedKeys, RECORDS_OBJECT, trigger, watchThisProcess } = await import(${JSON.stringify(OBJECTS_URL)});
  const native = loadNative();`;
const WITH_RINGS = `${WITH_NATIVE}
  const object = native.load(RECORDS_OBJECT, watchThisProcess(10, 0));
  object.programs.get('write_on_system_call').attach();
  const rings = [object.maps.get('first'), object.maps.get('second')];`;
const WITH_BULK_WORK = `${WITH_NATIVE}
  const count = 50_000;
  const map = native.createMap(hashMap({ maxEntries: count }));
  const ignore = () => undefined;
  map.updateMany(numberedKeys(count, 4), new Uint8Array(count * 8), count).catch(ignore);
  map.updateMany(numberedKeys(1, 4), new Uint8Array(9), 1).catch(ignore);
  map.entries().catch(ignore);
  map.deleteMany(numberedKeys(count, 4), count).catch(ignore);
  native.waitForReaders().catch(ignore);`;

async function exitOf(program: string): Promise<{ code: number; signal: string | null; stderr: string }> {
  try {
    const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    return { code: 0, signal: null, stderr };
  } catch (error) {
    return error as { code: number; signal: string | null; stderr: string };
  }
}

describe('a process', () => {
  test('ends as uncaught when the receiver of a batch throws', async () => {
    const { code, stderr } = await exitOf(`${WITH_RINGS}
      native.startRings(rings, () => { throw new Error('the receiver failed'); }, { maxBatch: 8 });
      trigger();`);
    expect(code).toBe(1);
    expect(stderr).toContain('Error: the receiver failed');
  });

  test('goes on receiving when it handles that itself', async () => {
    const program = `${WITH_RINGS}
      let batches = 0;
      process.on('uncaughtException', () => { if (batches === 3) process.exit(9); });
      native.startRings(rings, () => { batches++; throw new Error('again'); }, { maxBatch: 1 });
      trigger();`;
    expect(await exitOf(program)).toMatchObject({ code: 9, signal: null });
  });

  test('may exit while the ring thread reads', async () => {
    const program = `${WITH_RINGS}
      native.startRings(rings, () => process.exit(7), { maxBatch: 1 });
      trigger();`;
    expect(await exitOf(program)).toMatchObject({ code: 7, signal: null });
  });

  test.each([0, 5, 20])('may exit %d ms into work off the loop', async (delay) => {
    const program = `${WITH_BULK_WORK}
      setTimeout(() => process.exit(7), ${delay});`;
    expect(await exitOf(program)).toMatchObject({ code: 7, signal: null, stderr: '' });
  });
});

describe('a worker may be terminated at any moment', () => {
  test.each([
    [
      'while its ring thread reads',
      `${WITH_RINGS}
       native.startRings(rings, () => { trigger(); parentPort.postMessage(0); }, { maxBatch: 1 });
       trigger();`,
    ],
    ['while work is off the loop', `${WITH_BULK_WORK} parentPort.postMessage(0);`],
  ])('%s', async (_, body) => {
    const program = `(async () => { const { parentPort } = require('node:worker_threads'); ${body} })()`;
    for (let round = 0; round < 20; round++) {
      const worker = new Worker(program, { eval: true });
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
      await setTimeout(round % 4);
      await worker.terminate();
    }
  });
});
