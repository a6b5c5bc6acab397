import { expect, it } from 'vitest';
import { readRunOptions } from './run-options.ts';

const CERTIFICATES = ['--grpc-mtls-cert-dir', '/certs'];
const IN_CLUSTER = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };

const read = (args: readonly string[], environment: NodeJS.ProcessEnv = IN_CLUSTER) =>
  readRunOptions([...CERTIFICATES, ...args], environment).cluster;

it('has the documented defaults', () => {
  expect(read([])).toEqual({
    healthAddress: { host: '', port: 8081 },
    grpcPort: 50_051,
    grpcControllerName: 'controller',
    grpcDebuggerName: 'debugger',
    grpcCertificateDirectory: '/certs',
  });
  expect(readRunOptions(['--policy-dir', 'a'], IN_CLUSTER).cluster).toBeUndefined();
});

it('takes an empty selector for off, and refuses one that selects everything', () => {
  expect(read(['--learning-namespace-selector', '  '])?.learningSelector).toBeUndefined();
  expect(read(['--learning-namespace-selector='])?.learningSelector).toBeUndefined();
  expect(read(['--learning-namespace-selector', '{"matchLabels":{"a":"b"}}'])?.learningSelector).toHaveLength(
    1,
  );
  expect(() => read(['--learning-namespace-selector', '{"matchLabels":{}}'])).toThrow('it is empty');
  expect(() => read(['--learning-namespace-selector', 'a=b'])).toThrow('must be a label selector as JSON');
});

it('serves nothing by gRPC only where that is said', () => {
  expect(read(['--grpc-mtls-enabled=false'])?.grpcCertificateDirectory).toBeUndefined();
  expect(() => read(['--grpc-mtls-enabled', 'no'])).toThrow('expected true or false');
});

it('turns the probes off by 0', () => {
  expect(read(['--health-probe-bind-address', '0'])?.healthAddress).toBeUndefined();
});

it('takes the collector from the environment, and from flags first', () => {
  const environment = {
    ...IN_CLUSTER,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector:4317',
    OTEL_EXPORTER_OTLP_CERTIFICATE: '/certs/ca.crt',
  };
  expect(read([], environment)?.otlp).toEqual({
    endpoint: 'https://collector:4317',
    protocol: 'grpc',
    caFile: '/certs/ca.crt',
  });
  expect(
    read(['--otlp-endpoint', 'other:4318', '--otlp-protocol', 'http/protobuf'], environment)?.otlp,
  ).toEqual({
    endpoint: 'other:4318',
    protocol: 'http/protobuf',
    caFile: '/certs/ca.crt',
  });
  expect(read(['--otlp-endpoint='], environment)?.otlp).toBeUndefined();
  expect(() => read(['--otlp-endpoint', 'a:1', '--otlp-client-cert', 'b'])).toThrow('belong together');
});

it('knows its own pod and its node', () => {
  const environment = { ...IN_CLUSTER, POD_NAME: 'agent-x', POD_NAMESPACE: 'system', NODE_NAME: 'n1' };
  expect(read([], environment)?.ownPod).toEqual({ name: 'agent-x', namespace: 'system' });
  expect(read([], { ...environment, POD_NAME: '' })?.ownPod).toBeUndefined();
  expect(readRunOptions(CERTIFICATES, environment).nodeName).toBe('n1');
  expect(readRunOptions([...CERTIFICATES, '--node-name', 'n2'], environment).nodeName).toBe('n2');
});
