import { UsageError } from '@runtime-enforcer/kube/program-flags';
import { describe, expect, it } from 'vitest';
import { readControllerOptions } from './options.ts';

const INTERVAL = '--wp-status-reconciler-update-interval=30s';
const read = (args: readonly string[], environment: NodeJS.ProcessEnv = {}) =>
  readControllerOptions([INTERVAL, ...args], environment);

describe('readControllerOptions', () => {
  it('has the defaults that users know', () => {
    const webhookCertificates = {
      directory: '/tmp/k8s-webhook-server/serving-certs',
      names: { certificate: 'tls.crt', key: 'tls.key', authorities: 'ca.crt' },
    };
    expect(read([])).toEqual({
      logLevel: 'info',
      health: { host: '', port: 8081 },
      metrics: { address: undefined, secure: true, certificates: webhookCertificates },
      election: undefined,
      webhook: {
        address: { host: '', port: 9443 },
        certificates: webhookCertificates,
        unknownPolicy: 'warn',
      },
      status: {
        intervalMs: 30_000,
        agentPort: 50_051,
        agentSelector: 'app.kubernetes.io/component=agent',
        agentCertificateDirectory: '/etc/runtime-enforcer/certs',
      },
    });
  });

  it('takes what the chart passes', () => {
    const options = read(
      [
        '--metrics-bind-address=:8443',
        '--leader-elect',
        '--health-probe-bind-address',
        ':8081',
        '--metrics-cert-path=/m',
        '--metrics-cert-key=k.pem',
        '--webhook-cert-name=c.pem',
        '--enable-http2=false',
        '--wp-status-reconciler-agent-grpc-mtls-enabled=false',
        '--admission-unknown-policy=deny',
      ],
      { POD_NAME: 'c-1', POD_NAMESPACE: 're', OTEL_EXPORTER_OTLP_ENDPOINT: 'otel:4317' },
    );
    expect(options).toMatchObject({
      metrics: {
        address: { host: '', port: 8443 },
        certificates: { directory: '/m', names: { certificate: 'tls.crt', key: 'k.pem' } },
      },
      election: { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 },
      webhook: { certificates: { names: { certificate: 'c.pem' } }, unknownPolicy: 'deny' },
      otlp: { endpoint: 'otel:4317', protocol: 'grpc' },
      podName: 'c-1',
      podNamespace: 're',
    });
    expect(options.status).not.toHaveProperty('agentCertificateDirectory');
  });

  it.each([
    [['--nope'], '"--nope" is not a flag'],
    [['-leader-elect'], 'is not a flag'],
    [['extra'], '"extra" is not expected'],
    [['--log-level=loud'], '--log-level "loud" is not known; expected debug or info'],
    [['--log-level'], '--log-level needs a value'],
    [['--leader-elect=maybe'], '--leader-elect "maybe"'],
    [['--wp-status-reconciler-update-interval=0'], 'expected a time longer than none'],
    [['--wp-status-reconciler-update-interval=-30s'], 'expected a time longer than none'],
    [['--wp-status-reconciler-agent-grpc-port=70000'], 'expected a port'],
    [['--wp-status-reconciler-agent-label-selector=a in'], '--wp-status-reconciler-agent-label-selector'],
    [['--metrics-bind-address=8443'], 'expected HOST:PORT'],
    [['--webhook-bind-address=0'], 'the webhooks must be served'],
    [['--enable-http2'], 'HTTP/2 is not offered'],
    [['--otlp-protocol=carrier-pigeon'], '--otlp-protocol "carrier-pigeon"'],
    [['--leader-elect', '--leader-elect-renew-deadline=15s'], 'must be whole seconds and longer than'],
  ])('refuses %j', (args, words) => {
    expect(() => read(args)).toThrow(words);
    expect(() => read(args)).toThrow(UsageError);
  });

  it('wants to be told how often statuses are written', () => {
    expect(() => readControllerOptions([], {})).toThrow('--wp-status-reconciler-update-interval');
  });
});
