import { certificateStore } from '@runtime-enforcer/certs/certificate-store';
import { createAgentClient } from '@runtime-enforcer/rpc/agent-client';
import type { ReadingAnswer, ReadingOrder } from './agent-reader.ts';

const LISTING_TIMEOUT_MS = 30_000;

process.on('message', (order: ReadingOrder) => {
  readAll(order).then(
    (policies) => answer({ policies }),
    (error: unknown) => answer({ error: String(error) }),
  );
});

function answer(given: ReadingAnswer): void {
  process.send?.(given);
}

async function readAll({ port, podName, namespace, certificates: directory }: ReadingOrder): Promise<number> {
  const refuse = (error: unknown): never => {
    throw new Error('the controller of the bench has no certificates', { cause: error });
  };
  const certificates = certificateStore({ directory, onRefused: refuse });
  await certificates.start();
  const client = createAgentClient({
    ...{ address: '127.0.0.1', port, podName, namespace, certificates },
  });
  try {
    const keys = new Set<string>();
    const signal = AbortSignal.timeout(LISTING_TIMEOUT_MS);
    for await (const event of client.watch({ signal })) {
      if (event.kind === 'lost') throw event.error;
      const { policies, violations, observations } = event.report;
      for (const key of policies?.policies.keys() ?? []) keys.add(key);
      if (policies?.more !== true && violations?.more !== true && observations?.more !== true)
        return keys.size;
    }
    throw new Error('the agent did not tell all in time');
  } finally {
    client.close();
    certificates.stop();
  }
}
