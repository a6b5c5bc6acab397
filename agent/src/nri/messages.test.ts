import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { descriptorIsCurrent } from './generate.ts';
import {
  containerFromMessage,
  containerToMessage,
  eventMask,
  nriCodecs,
  podFromMessage,
  podToMessage,
} from './messages.ts';
import type { NriContainer, NriPodSandbox } from './messages.ts';

const FUZZ = { seed: 1_722_004, numRuns: 1_000 };

const text = fc.string({ unit: 'binary', maxLength: 12 }).map((value) => value.toWellFormed());
const map = fc
  .array(fc.tuple(fc.oneof(text, fc.constant('__proto__')), text))
  .map((entries) => new Map(entries));
const pod: fc.Arbitrary<NriPodSandbox> = fc.record({
  id: text,
  name: text,
  uid: text,
  namespace: text,
  cgroupParent: text,
  runtimeHandler: text,
  labels: map,
  annotations: map,
  pid: fc.nat(0xffff_ffff),
});
const container: fc.Arbitrary<NriContainer> = fc.record({
  id: text,
  podSandboxId: text,
  name: text,
  cgroupsPath: text,
  image: text,
  labels: map,
  annotations: map,
  args: fc.array(text),
  pid: fc.nat(0xffff_ffff),
  state: fc.constantFrom('unknown', 'created', 'paused', 'running', 'stopped'),
});

describe('NRI messages', () => {
  it('are read by a descriptor made from the .proto files of today', () => {
    expect(descriptorIsCurrent()).toBe(true);
  });

  it('survive encoding and decoding', () => {
    fc.assert(
      fc.property(pod, container, (aPod, aContainer) => {
        const bytes = nriCodecs().startContainer.encode({
          pod: podToMessage(aPod),
          container: containerToMessage(aContainer),
        });
        const message = nriCodecs().startContainer.decode(bytes);
        expect(message.pod && podFromMessage(message.pod)).toEqual(aPod);
        expect(message.container && containerFromMessage(message.container)).toEqual(aContainer);
      }),
      { ...FUZZ, numRuns: 200 },
    );
  });

  it('are read as the numbered fields of the public API', () => {
    const bytes = Buffer.from(
      '0a05' +
        '0a0170' +
        '4801' + // pod { id: "p", pid: 1 }
        '120e' +
        '0a0163' +
        '2003' +
        '5a04' +
        '2a022f78' +
        'b20100', // container { id: "c", state: 3, linux { cgroups_path: "/x" }, image {} }
      'hex',
    );
    const message = nriCodecs().startContainer.decode(bytes);
    expect(message.pod).toMatchObject({ id: 'p', pid: 1 });
    expect(message.container).toMatchObject({
      id: 'c',
      state: 3,
      linux: { cgroupsPath: '/x' },
      image: { name: '' },
    });
  });

  it('keep hostile label keys as mere text', () => {
    const labels = new Map([
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['x'.repeat(100_000), 'c'],
    ]);
    const message = { key: '', ...podToMessage({ ...emptyPod, labels }) };
    const bytes = nriCodecs().startContainer.encode({ pod: message, container: null });
    const decoded = nriCodecs().startContainer.decode(bytes).pod;
    expect(decoded && podFromMessage(decoded).labels).toEqual(labels);
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });

  it('replace bytes that are not UTF-8 and lose nothing else', () => {
    const bytes = Buffer.from('0a0a' + '0a0170' + '1205' + '61ff62c328', 'hex');
    expect(nriCodecs().startContainer.decode(bytes).pod).toMatchObject({ id: 'p', name: 'a\ufffdb\ufffd(' });
  });

  it('give unknown states as unknown and missing parts as empty', () => {
    const message = nriCodecs().startContainer.decode(Buffer.from('12022063', 'hex'));
    expect(message.pod).toBeNull();
    expect(message.container && containerFromMessage(message.container)).toEqual({
      id: '',
      podSandboxId: '',
      name: '',
      state: 'unknown',
      cgroupsPath: '',
      pid: 0,
      image: '',
      labels: new Map(),
      annotations: new Map(),
      args: [],
    });
  });

  it('read a timeout beyond 2^53 nanoseconds as a number', () => {
    const bytes = Buffer.from('20ffffffffffffffff7f', 'hex');
    expect(nriCodecs().request.decode(bytes).timeoutNano).toBe(2 ** 63);
  });

  it('of any bytes are decoded or refused with an error that names the message', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          const { pods, containers } = nriCodecs().synchronize.decode(bytes);
          pods.map(podFromMessage);
          containers.map(containerFromMessage);
        } catch (error) {
          expect(error).toHaveProperty('message', 'bytes are not a valid SynchronizeRequest message');
        }
      }),
      FUZZ,
    );
  });

  it('that nest groups without end are refused', () => {
    expect(() => nriCodecs().synchronize.decode(Buffer.alloc(1_000_000, 0x7b))).toThrow('not a valid');
  });
});

describe('eventMask', () => {
  it('sets the bit below the event number', () => {
    expect(eventMask(6, 11)).toBe(0x20 | 0x400);
  });
});

const emptyPod: NriPodSandbox = {
  id: '',
  name: '',
  uid: '',
  namespace: '',
  cgroupParent: '',
  runtimeHandler: '',
  pid: 0,
  labels: new Map(),
  annotations: new Map(),
};
