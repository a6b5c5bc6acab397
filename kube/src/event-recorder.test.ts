import { describe, expect, it, onTestFinished } from 'vitest';
import { eventRecorder } from './event-recorder.ts';
import { type EventNote, eventSeries } from './event-series.ts';
import { type FakeRequest, fakeStatus, startFakeApiServer } from './fake-api-server.ts';

const note = (fields: Partial<EventNote> = {}): EventNote => ({
  subject: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web-1', uid: 'u' },
  type: 'Warning',
  reason: 'ExecDenied',
  message: 'no',
  ...fields,
});

describe('eventSeries', () => {
  it('counts what is alike, until ten minutes have passed', () => {
    const series = eventSeries();
    expect(series.decide(note(), 0)).toMatchObject({ action: 'create' });
    expect(series.decide(note(), 1)).toMatchObject({ action: 'count', count: 2 });
    expect(series.decide(note({ message: 'other' }), 2)).toMatchObject({
      action: 'create',
      message: 'other',
    });
    expect(series.decide(note({ reason: 'Other' }), 3)).toMatchObject({ action: 'create' });
    expect(series.decide(note(), 600_001)).toMatchObject({ action: 'count', count: 3 });
    expect(series.decide(note(), 1_300_000)).toMatchObject({ action: 'create' });
  });

  it('puts the eleventh different message and those after it into one', () => {
    const series = eventSeries();
    for (let index = 0; index < 10; index++) {
      expect(series.decide(note({ message: String(index) }), 0).action).toBe('create');
    }
    expect(series.decide(note({ message: '10' }), 0)).toMatchObject({
      action: 'create',
      message: '(combined from similar events): 10',
    });
    expect(series.decide(note({ message: '11' }), 0)).toMatchObject({ action: 'count', count: 2 });
    expect(series.decide(note({ message: '3' }), 0)).toMatchObject({
      action: 'count',
      count: 2,
      message: '3',
    });
  });

  it('lets no object have more than a burst of 25, then one in five minutes', () => {
    const series = eventSeries();
    const decided = Array.from({ length: 40 }, () => series.decide(note(), 0).action);
    expect(decided.filter((action) => action !== 'drop')).toHaveLength(25);
    const other = note({ subject: { ...note().subject, name: 'web-2' } });
    expect(series.decide(other, 0).action).toBe('create');
    expect(series.decide(note(), 300_000).action).toBe('count');
    expect(series.decide(note(), 300_001).action).toBe('drop');
  });

  it('remembers a bounded number of objects', () => {
    const series = eventSeries();
    for (let index = 0; index < 5_000; index++) {
      series.decide(note({ subject: { ...note().subject, name: `n${index}` } }), 0);
    }
    expect(series.decide(note({ subject: { ...note().subject, name: 'n4999' } }), 0).action).toBe('count');
    expect(series.decide(note({ subject: { ...note().subject, name: 'n0' } }), 0).action).toBe('create');
  });

  it('shortens a message that the API server would refuse', () => {
    expect(eventSeries().decide(note({ message: 'x'.repeat(5_000) }), 0)).toMatchObject({
      message: expect.stringMatching(/^x{1023}…$/) as string,
    });
  });
});

describe('eventRecorder', () => {
  async function open(answer: (request: FakeRequest) => void) {
    const bodies: Record<string, unknown>[] = [];
    const server = await startFakeApiServer((request) => {
      bodies.push(JSON.parse(request.body) as Record<string, unknown>);
      answer(request);
    });
    const lost: string[] = [];
    const recorder = eventRecorder({
      client: server.client,
      component: 'agent',
      host: 'node-1',
      onLost: (_, error) => lost.push(String(error)),
    });
    onTestFinished(async () => {
      await recorder.stop();
      await server.stop();
    });
    return { server, recorder, bodies, lost };
  }

  it('creates one Event, then counts it up', async () => {
    const { server, recorder, bodies } = await open(({ reply }) => reply(200, {}));
    recorder.record(note());
    recorder.record(note());
    await recorder.flush();
    expect(server.requests[0]).toBe('POST /api/v1/namespaces/shop/events');
    expect(bodies[0]).toMatchObject({
      involvedObject: { kind: 'Pod', name: 'web-1', uid: 'u' },
      reason: 'ExecDenied',
      source: { component: 'agent', host: 'node-1' },
      count: 1,
    });
    expect(server.requests[1]).toMatch(/^PATCH \/api\/v1\/namespaces\/shop\/events\/web-1\.[0-9a-f]{16}$/);
    expect(bodies[1]).toMatchObject({ count: 2 });
    expect(recorder.counters()).toEqual({ written: 2, suppressed: 0, lost: 0 });
  });

  it('begins another when the Event has ended', async () => {
    const { server, recorder } = await open(({ method, reply }) =>
      method === 'PATCH' ? reply(404, fakeStatus(404, 'NotFound')) : reply(200, {}),
    );
    recorder.record(note());
    recorder.record(note());
    await recorder.flush();
    expect(server.requests.map((request) => request.split(' ')[0])).toEqual(['POST', 'PATCH', 'POST']);
  });

  it('counts what is lost, and creates the Event with the next note', async () => {
    let fails = true;
    const { server, recorder, lost } = await open(({ reply }) => reply(fails ? 500 : 200, {}));
    recorder.record(note());
    await recorder.flush();
    fails = false;
    recorder.record(note());
    await recorder.flush();
    expect(lost).toHaveLength(1);
    expect(server.requests.every((request) => request.startsWith('POST'))).toBe(true);
    expect(recorder.counters()).toEqual({ written: 1, suppressed: 0, lost: 1 });
  });

  it('holds a bounded number of notes for an API server that does not answer', async () => {
    const { recorder, lost } = await open(() => undefined);
    for (let index = 0; index < 1_200; index++) {
      recorder.record(note({ subject: { ...note().subject, name: `n${index}` } }));
    }
    expect(lost).toHaveLength(200);
    await recorder.stop();
  });

  it('keeps the name of the Event within bounds', async () => {
    const { server, recorder } = await open(({ reply }) => reply(200, {}));
    recorder.record(
      note({ subject: { kind: 'Pod', apiVersion: 'v1', name: `${'x'.repeat(235)}-.${'y'.repeat(16)}` } }),
    );
    recorder.record(
      note({ subject: { kind: 'Pod', apiVersion: 'v1', name: `${'x'.repeat(235)}-.${'y'.repeat(16)}` } }),
    );
    await recorder.flush();
    expect(server.requests[1]).toMatch(/events\/x{235}\.[0-9a-f]{16}$/);
  });
});
