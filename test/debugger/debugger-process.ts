import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { issueCertificate } from '@runtime-enforcer/certs/authority';
import { renderChart } from '../chart/render-chart.ts';
import { accountKubeconfig } from '../cluster/account-kubeconfig.ts';
import type { ControlPlane } from '../cluster/control-plane.ts';
import { createAll } from '../controller/chart-objects.ts';
import { CONTROLLER_NAMESPACE } from '../controller/controller-process.ts';
import { REPOSITORY } from '../vm/repository.ts';

const MAIN = join(REPOSITORY, 'debugger/src/main.ts');
const TIME_LIMIT_MS = 60_000;
const VALID_FOR_MS = 3_600_000;

/** What a run of the debugger printed, and how it ended. */
export interface DebuggerRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the debugger as in its pod: with the service account that the chart gives it, a certificate, and a namespace. */
export interface DebuggerRunner {
  run(
    args: readonly string[],
    options?: {
      /** Of the client's certificate. */
      readonly dnsName?: string;
      /** May do nothing. */
      readonly account?: string;
      /** Ends it by SIGTERM when its output has this text so often. */
      readonly untilOutput?: { readonly text: string; readonly times: number };
    },
  ): Promise<DebuggerRun>;
}

/** @param directory for files of the test */
export async function debuggerRunner(
  plane: ControlPlane,
  directory: string,
  port: number,
): Promise<DebuggerRunner> {
  const rendered = await renderChart({ values: { debugger: { enabled: true } } });
  const rights = rendered.filter(({ template }) => template === 'templates/debugger/rbac.yaml');
  await createAll(
    plane.admin.client,
    rights.map(({ object }) => object),
  );
  const account = { namespace: CONTROLLER_NAMESPACE, name: 'runtime-enforcer-debugger' };
  const kubeconfig = await accountKubeconfig(plane, directory, account);

  async function certificates(dnsName: string): Promise<string> {
    const { authority } = plane.credentials;
    const issued = await issueCertificate(authority, {
      ...{ commonName: dnsName, dnsNames: [dnsName], usages: ['client'] },
      ...{ now: new Date(), validForMs: VALID_FOR_MS },
    });
    const place = join(directory, dnsName);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, 'tls.crt'), issued.certificate);
    await writeFile(join(place, 'tls.key'), issued.key);
    await writeFile(join(place, 'ca.crt'), authority.certificate);
    return place;
  }

  return {
    async run(args, { dnsName = 'debugger', account: name, untilOutput } = {}) {
      const own =
        name === undefined
          ? kubeconfig
          : await accountKubeconfig(plane, directory, { namespace: CONTROLLER_NAMESPACE, name });
      const child = spawn(process.execPath, [MAIN, `--kubeconfig=${own}`, ...args], {
        env: {
          POD_NAMESPACE: CONTROLLER_NAMESPACE,
          DEBUGGER_GRPC_PORT: String(port),
          DEBUGGER_CERT_DIR: await certificates(dnsName),
        },
        timeout: TIME_LIMIT_MS,
        killSignal: 'SIGKILL',
      });
      let stdout = '';
      let stderr = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
        if (untilOutput !== undefined && stdout.split(untilOutput.text).length > untilOutput.times)
          child.kill('SIGTERM');
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      return await new Promise((resolve, reject) => {
        child.on('error', reject);
        child.on('close', (code) => resolve({ code, stdout, stderr }));
      });
    },
  };
}
