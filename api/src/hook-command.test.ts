import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExecutablePath } from './executable-path.ts';
import { hookCommands, learnedOrigin } from './hook-command.ts';

const exec = (...command: unknown[]) => ({ exec: { command } });

describe('hookCommands', () => {
  it('finds every exec probe and lifecycle hook, by container', () => {
    const spec = {
      initContainers: [{ name: 'sidecar', startupProbe: exec('/bin/up') }],
      containers: [
        {
          name: 'main',
          livenessProbe: exec('cat', '/tmp/healthy'),
          readinessProbe: { httpGet: { path: '/', port: 80 } },
          lifecycle: { postStart: exec('/bin/warm'), preStop: exec('/bin/sleep', '5') },
        },
        { name: 'plain' },
      ],
    };
    expect(hookCommands(spec)).toEqual(
      new Map([
        ['sidecar', ['/bin/up']],
        ['main', ['cat', '/bin/warm', '/bin/sleep']],
      ]),
    );
  });

  it('takes any JSON without failing', () => {
    const container = fc.oneof(
      fc.jsonValue(),
      fc.record({ name: fc.jsonValue(), livenessProbe: fc.jsonValue(), lifecycle: fc.jsonValue() }),
      fc.record({ name: fc.constant('main'), livenessProbe: fc.record({ exec: fc.jsonValue() }) }),
    );
    const spec = fc.oneof(fc.jsonValue(), fc.record({ containers: fc.array(container) }));
    fc.assert(fc.property(spec, (given) => hookCommands(given) instanceof Map));
  });
});

describe('learnedOrigin', () => {
  it.each([
    ['/bin/check', '/bin/check', 'probe'],
    ['/bin/cat', '/usr/bin/cat', 'probe'],
    ['cat', '/usr/bin/cat', 'probe'],
    ['cat', '/bin/busybox', 'probe'],
    ['sh', '/usr/bin/dash', 'probe'],
    ['/bin/sh', '/bin/busybox', 'probe'],
    ['python3', '/usr/bin/python3.12', 'probe'],
    ['cat', '/usr/bin/catfish', 'exec'],
    ['cat', '/usr/bin/id', 'exec'],
    ['/', '/usr/bin/1', 'exec'],
    ['bash', '/bin/dash', 'exec'],
  ])('of %j, run as %s, is %s', (command, path, origin) => {
    expect(learnedOrigin('exec', path as ExecutablePath, [command])).toBe(origin);
  });

  it('is the kernel’s for whatever did not enter from outside', () => {
    for (const origin of ['entrypoint', 'unknown', 'snapshot'] as const) {
      expect(learnedOrigin(origin, '/bin/cat' as ExecutablePath, ['/bin/cat'])).toBe(origin);
    }
    expect(learnedOrigin('exec', '/bin/cat' as ExecutablePath, [])).toBe('exec');
  });
});
