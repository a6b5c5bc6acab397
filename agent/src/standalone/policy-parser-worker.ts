import { parentPort } from 'node:worker_threads';
import { parsePolicyDocuments, type SourceFile } from '@runtime-enforcer/api/policy-document';

// The whole program of a thread: see policy-parser.ts.
parentPort?.on('message', (source: SourceFile) => {
  parentPort?.postMessage(parsePolicyDocuments(source));
});
