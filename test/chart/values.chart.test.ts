import { describe, expect, it } from 'vitest';
import { GENERATED, objectsOf } from './component-values.ts';
import { renderChart } from './render-chart.ts';
import { VALUE_CASES } from './value-cases.ts';

describe('values', () => {
  const plain = renderChart({ values: { debugger: { enabled: true } } });

  it.each(VALUE_CASES)('%s', async (name, values, shows, expected) => {
    const rendered = await renderChart({ values });
    expect(shows(rendered)).toEqual(expected);
    // Without it something else is shown, or the default is what is asked for.
    const isDefault = JSON.stringify(values) === '{}';
    if (!isDefault && !CHECKED_AGAINST_NOTHING.has(name)) {
      const standard = await plain;
      expect(safely(() => shows(standard))).not.toEqual(expected);
    }
  });

  it.each([
    [
      'an endpoint that is missing',
      { telemetry: { collectorStrategy: 'external' } },
      'telemetry.externalCollector.endpoint: name the collector',
    ],
    [
      'a secret that is missing',
      { certificates: { mode: 'secret' } },
      /certificates\.secret\.\w+: (name the secret|give the authority)/,
    ],
    ['a strategy that is none', { telemetry: { collectorStrategy: 'both' } }, 'collectorStrategy'],
    ['a level that is none', { agent: { logLevel: 'loud' } }, 'logLevel'],
    ['a duration without a unit', { controller: { wpStatusUpdateInterval: '30' } }, 'wpStatusUpdateInterval'],
    ['a port that is none', { agent: { metricsPort: 70_000 } }, 'metricsPort'],
    ['a toleration that is text', { agent: { tolerations: ['all'] } }, 'tolerations'],
  ])('refuses %s', async (_, values, message) => {
    await expect(renderChart({ values })).rejects.toThrow(message);
  });

  it('keeps names within what Kubernetes takes, however long the release is called', async () => {
    const rendered = await renderChart({
      release: 'r'.repeat(53),
      values: { ...GENERATED, debugger: { enabled: true } },
    });
    for (const { object } of rendered)
      expect(object.metadata.name.length, object.metadata.name).toBeLessThanOrEqual(63 + 20);
    for (const kind of ['Service', 'DaemonSet', 'Deployment', 'Secret'])
      for (const { metadata } of objectsOf(rendered, kind))
        expect(metadata.name.length, metadata.name).toBeLessThanOrEqual(63);
  });
});

/** Values whose effect is that nothing is there that is not there by default either. */
const CHECKED_AGAINST_NOTHING: ReadonlySet<string> = new Set(['certificates.mode: cert-manager-csi']);

function safely(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}
