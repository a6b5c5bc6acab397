import { describe, expect, it } from 'vitest';
import { OtlpOptionsError, readOtlpOptions } from './otlp-options.ts';

const ENVIRONMENT = {
  OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector:4317',
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
  OTEL_EXPORTER_OTLP_CERTIFICATE: '/environment/ca.crt',
};

const read = (flags: Readonly<Record<string, string>>, environment: NodeJS.ProcessEnv = {}) =>
  readOtlpOptions((name) => flags[name], environment);

describe('where log records go', () => {
  it('is nowhere unless somebody says so', () => {
    expect(read({})).toBeUndefined();
    expect(read({ 'otlp-ca-cert': '/ca.crt' })).toBeUndefined();
  });

  it('is told by the environment, and by a flag before that', () => {
    expect(read({}, ENVIRONMENT)).toEqual({
      endpoint: 'https://collector:4317',
      protocol: 'http/protobuf',
      caFile: '/environment/ca.crt',
    });
    expect(read({ 'otlp-endpoint': 'other:4317', 'otlp-protocol': 'grpc' }, ENVIRONMENT)).toEqual({
      endpoint: 'other:4317',
      protocol: 'grpc',
      caFile: '/environment/ca.crt',
    });
  });

  it('is turned off by an empty flag', () => {
    expect(read({ 'otlp-endpoint': '' }, ENVIRONMENT)).toBeUndefined();
    expect(read({ 'otlp-ca-cert': '', 'otlp-protocol': '' }, ENVIRONMENT)).toEqual({
      endpoint: 'https://collector:4317',
      protocol: 'grpc',
    });
  });

  it.each([
    [{ 'otlp-client-cert': '/tls.crt' }, /--otlp-client-cert and --otlp-client-key belong together/],
    [{ 'otlp-protocol': 'http/json' }, /"http\/json" is not known; expected grpc or http\/protobuf/],
  ])('is refused with %j', (flags, message) => {
    const ask = () => read(flags, ENVIRONMENT);
    expect(ask).toThrow(OtlpOptionsError);
    expect(ask).toThrow(message);
  });
});
