import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import {
  Server as GrpcServer,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { createLogExport, type ExportCounts, type LogExport } from './log-export.ts';
import { checkOtlpEndpoint, type OtlpTarget } from './otlp-exporter.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

function exportTo(target: OtlpTarget, timeoutMs = 500): { logExport: LogExport; warnings: string[] } {
  const warnings: string[] = [];
  const note = (fields: object): void => void warnings.push(JSON.stringify(fields));
  const silent = (): void => undefined;
  const logExport = createLogExport({
    ...{ target, scope: 'test', resource: { 'service.name': 'test' }, timeoutMs, gatherMs: 5 },
    log: { debug: silent, info: silent, warn: note, error: note },
  });
  stops.push(() => logExport.stop(0));
  return { logExport, warnings };
}

function emit(logExport: LogExport, records: number, count: number): void {
  for (let index = 0; index < records; index++) {
    logExport.emit({ name: 'policy_violation', severity: 'WARN', attributes: { count, index } });
  }
}

function lostOf({ lost }: ExportCounts): { records: number; occurrences: number } {
  const sum = { records: 0, occurrences: 0 };
  for (const { records, occurrences } of Object.values(lost)) {
    sum.records += records;
    sum.occurrences += occurrences;
  }
  return sum;
}

async function listening(server: Server | HttpServer): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  server.listen(0, '127.0.0.1', () => resolve(undefined));
  await promise;
  return (server.address() as AddressInfo).port;
}

/** A collector that answers each call of the log service as it is told. Requests are not looked into. */
async function grpcCollector(
  answer: (call: number, callback: sendUnaryData<Buffer>) => void,
  port = 0,
): Promise<{ port: number; calls: () => number; stop: () => void }> {
  let calls = 0;
  const server = new GrpcServer();
  const bytes = (value: Buffer): Buffer => value;
  server.addService(
    {
      export: {
        path: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
        ...{ requestStream: false, responseStream: false },
        ...{ requestSerialize: bytes, requestDeserialize: bytes },
        ...{ responseSerialize: bytes, responseDeserialize: bytes },
      },
    },
    {
      export(_call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) {
        answer(++calls, callback);
      },
    },
  );
  const bound = Promise.withResolvers<number>();
  server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, taken) => {
    if (error === null) bound.resolve(taken);
    else bound.reject(error);
  });
  const stop = (): void => server.forceShutdown();
  stops.push(stop);
  return { port: await bound.promise, calls: () => calls, stop };
}

const EMPTY = Buffer.alloc(0);

describe('a collector over gRPC', () => {
  it('gets everything in batches', async () => {
    const collector = await grpcCollector((_call, callback) => callback(null, EMPTY));
    const { logExport } = exportTo({ protocol: 'grpc', endpoint: `http://127.0.0.1:${collector.port}` });
    emit(logExport, 1_500, 3);
    await expect
      .poll(() => logExport.counts().exported, { timeout: 5_000 })
      .toEqual({ records: 1_500, occurrences: 4_500 });
    expect(collector.calls()).toBe(3);
    expect(lostOf(logExport.counts()).records).toBe(0);
  });

  it('that is dead gets what it has room for when it is back, and the rest is counted', async () => {
    const gone = await grpcCollector((_call, callback) => callback(null, EMPTY));
    gone.stop();
    const { logExport, warnings } = exportTo({ protocol: 'grpc', endpoint: `127.0.0.1:${gone.port}` });
    const start = performance.now();
    emit(logExport, 10_000, 2);
    expect(performance.now() - start).toBeLessThan(2_000);
    expect(logExport.waiting).toBe(2_048);
    await expect.poll(() => logExport.counts().failures).toBeGreaterThan(0);
    await grpcCollector((_call, callback) => callback(null, EMPTY), gone.port);
    await expect.poll(() => logExport.counts().exported.records, { timeout: 15_000 }).toBe(2_048);
    expect(lostOf(logExport.counts())).toEqual({ records: 7_952, occurrences: 15_904 });
    expect(warnings).toHaveLength(1);
  }, 20_000);

  it('that takes and never answers loses what it was given, and holds nothing up', async () => {
    const collector = await grpcCollector(() => undefined);
    const { logExport } = exportTo({ protocol: 'grpc', endpoint: `127.0.0.1:${collector.port}` }, 100);
    emit(logExport, 600, 1);
    await expect.poll(() => logExport.counts().lost.unconfirmed.records, { timeout: 10_000 }).toBe(600);
    expect(logExport.counts().exported.records).toBe(0);
  });

  it('that refuses is not asked again for the same', async () => {
    const collector = await grpcCollector((_call, callback) => callback({ code: status.INVALID_ARGUMENT }));
    const { logExport } = exportTo({ protocol: 'grpc', endpoint: `127.0.0.1:${collector.port}` });
    emit(logExport, 10, 1);
    await expect.poll(() => logExport.counts().lost.refused.records).toBe(10);
    expect(collector.calls()).toBe(1);
  });

  it('that puts off is asked again', async () => {
    const collector = await grpcCollector((call, callback) =>
      call === 1 ? callback({ code: status.UNAVAILABLE }) : callback(null, EMPTY),
    );
    const { logExport } = exportTo({ protocol: 'grpc', endpoint: `127.0.0.1:${collector.port}` });
    emit(logExport, 10, 1);
    await expect.poll(() => logExport.counts().exported.records, { timeout: 5_000 }).toBe(10);
  });

  it('gets what waits when the program ends, and what it does not take then is counted', async () => {
    const collector = await grpcCollector((_call, callback) => callback(null, EMPTY));
    const { logExport } = exportTo({ protocol: 'grpc', endpoint: `127.0.0.1:${collector.port}` });
    emit(logExport, 1_000, 1);
    await logExport.stop(5_000);
    expect(logExport.counts().exported.records).toBe(1_000);
    emit(logExport, 1, 1);
    const silent = await grpcCollector(() => undefined);
    const other = exportTo({ protocol: 'grpc', endpoint: `127.0.0.1:${silent.port}` }, 10_000).logExport;
    emit(other, 5, 1);
    const start = performance.now();
    await other.stop(100);
    expect(performance.now() - start).toBeLessThan(2_000);
    expect(other.counts().lost.stopped.records).toBe(5);
  });
});

describe('a collector over HTTP', () => {
  it('gets everything at the path of its signal, as protobuf', async () => {
    const requests: string[] = [];
    const server = createHttpServer((request, response) => {
      requests.push(`${request.method ?? ''} ${request.url ?? ''} ${request.headers['content-type'] ?? ''}`);
      request.resume().on('end', () => response.writeHead(200).end());
    });
    const port = await listening(server);
    stops.push(() => server.close());
    const { logExport } = exportTo({ protocol: 'http/protobuf', endpoint: `http://127.0.0.1:${port}` });
    emit(logExport, 3, 1);
    await expect.poll(() => logExport.counts().exported.records).toBe(3);
    expect(requests).toEqual(['POST /v1/logs application/x-protobuf']);
  });

  it('that accepts and never answers costs the batch, not the program', async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => sockets.add(socket));
    const port = await listening(server);
    stops.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { logExport } = exportTo({ protocol: 'http/protobuf', endpoint: `http://127.0.0.1:${port}` }, 100);
    emit(logExport, 7, 1);
    await expect.poll(() => logExport.counts().lost.unconfirmed.records, { timeout: 10_000 }).toBe(7);
  });

  it('that answers with a page for people is told from one that takes records', async () => {
    const server = createHttpServer((_request, response) => response.writeHead(404).end('no such page'));
    const port = await listening(server);
    stops.push(() => server.close());
    const { logExport } = exportTo({ protocol: 'http/protobuf', endpoint: `http://127.0.0.1:${port}/other` });
    emit(logExport, 1, 1);
    await expect.poll(() => logExport.counts().lost.refused.records).toBe(1);
  });
});

describe('an endpoint', () => {
  it.each(['collector:4317', 'http://collector:4317', 'https://collector.ns.svc:4317/', '[::1]:4317'])(
    'for gRPC may be %s',
    (endpoint) => expect(() => checkOtlpEndpoint('grpc', endpoint)).not.toThrow(),
  );
  it.each(['', 'collector', 'unix:/x', 'https://collector', 'collector:4317/v1/logs', 'a b:1', 'ftp://c:1'])(
    'for gRPC may not be %j',
    (endpoint) => expect(() => checkOtlpEndpoint('grpc', endpoint)).toThrow(/expected HOST:PORT/),
  );
  it.each(['', 'collector:4318', 'ftp://collector', 'https://'])('for HTTP may not be %j', (endpoint) =>
    expect(() => checkOtlpEndpoint('http/protobuf', endpoint)).toThrow(/expected a URL/),
  );
});
