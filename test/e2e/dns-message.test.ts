import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { dnsQuestion, dnsResponse } from './dns-message.ts';

it('answers what a resolver asks', async () => {
  const server = createSocket('udp4');
  server.on('message', (query, { port }) => {
    const question = dnsQuestion(query);
    if (question === undefined) return;
    const addresses = question.name === 'known.example' ? ['10.1.2.3', '10.255.0.1'] : undefined;
    server.send(dnsResponse(question, addresses), port, '127.0.0.1');
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
  expect(await resolver.resolve4('Known.example')).toEqual(['10.1.2.3', '10.255.0.1']);
  await expect(resolver.resolve6('known.example')).rejects.toMatchObject({ code: 'ENODATA' });
  await expect(resolver.resolve4('other.example')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  server.close();
});

it('takes nothing that is cut off for a question', () => {
  const whole = Buffer.from('000101000001000000000000016103636f6d0000010001', 'hex');
  expect(dnsQuestion(whole)).toMatchObject({ id: 1, name: 'a.com', isForAddresses: true });
  for (let length = 0; length < whole.length; length++) {
    expect(dnsQuestion(whole.subarray(0, length)), String(length)).toBeUndefined();
  }
});
