import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renderChart } from '../chart/render-chart.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { createAll } from './chart-objects.ts';
import { type ControllerPlace, controllerPlace, type ControllerProcess } from './controller-process.ts';
import { directRequest } from './direct-request.ts';

const NAMESPACE = 'runtime-enforcer';
const WEBHOOK_NAME = `runtime-enforcer-controller-webhook.${NAMESPACE}.svc`;
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const PARTS = ['agent', 'controller', 'webhook', 'debugger', 'otel-collector'];
/** Short enough that an authority is replaced while the test looks. */
const LIFETIMES = [
  '--generated-certificates-authority-lifetime=40s',
  '--generated-certificates-lifetime=10s',
];
const ROTATION_MS = 60_000;

let plane: ControlPlane;
let place: ControllerPlace;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-generated-'));
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  place = await controllerPlace(plane);
  const rendered = await renderChart({ values: { certificates: { mode: 'generated' } } });
  const objects = rendered.filter(({ template }) =>
    ['templates/certificates/generated.yaml', 'templates/controller/webhooks.yaml'].includes(template),
  );
  expect(objects.length).toBeGreaterThan(10);
  await createAll(
    plane.admin.client,
    objects.map(({ object }) => object),
  );
});
afterAll(async () => {
  await place.stop();
  await plane.stop();
  await rm(directory, { recursive: true });
});

const read = async (path: string) => (await directRequest(plane, { method: 'GET', path })).body;

async function fieldsOf(secret: string): Promise<Record<string, string>> {
  const { data = {} } = (await read(`${SECRETS}/${secret}`)) as { data?: Record<string, string> };
  return Object.fromEntries(
    Object.entries(data).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]),
  );
}

/** As the chart makes them. */
async function emptySecrets(): Promise<void> {
  for (const name of ['ca', ...PARTS.map((part) => `${part}-tls`)]) {
    const path = `${SECRETS}/runtime-enforcer-${name}`;
    const body = { ...(await read(path)), data: {} };
    expect((await directRequest(plane, { method: 'PUT', path, body })).status).toBe(200);
  }
}

async function caBundles(): Promise<string[]> {
  const path = '/apis/admissionregistration.k8s.io/v1';
  const configurations = await Promise.all([
    read(`${path}/mutatingwebhookconfigurations/runtime-enforcer-mutating-webhook-configuration`),
    read(`${path}/validatingwebhookconfigurations/runtime-enforcer-validating-webhook-configuration`),
  ]);
  return configurations.flatMap((each) =>
    (each as unknown as { webhooks: { clientConfig: { caBundle?: string } }[] }).webhooks.map(
      ({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? '', 'base64').toString(),
    ),
  );
}

/** The certificate of the webhooks, as who trusts an authority and expects their name gets it. */
async function shownCertificate({ webhookPort }: ControllerProcess, ca: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: webhookPort, ca, servername: WEBHOOK_NAME });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      resolve(certificate?.serialNumber ?? '');
    });
  });
}

const start = async (name: string, args: readonly string[] = []) =>
  await place.start({
    args: [
      '--generated-certificates-release=runtime-enforcer',
      `--webhook-cert-path=${join(directory, name, 'webhook')}`,
      `--wp-status-reconciler-agent-grpc-mtls-cert-dir=${join(directory, name, 'controller')}`,
      ...args,
    ],
  });

describe('certificates that the controller makes', () => {
  it(
    'are replaced while it runs, their authority too, and the webhooks are always trusted',
    { timeout: 120_000 },
    async () => {
      const controller = await start('brief', LIFETIMES);
      await controller.ready();
      const serials = new Set<string>();
      const signers = new Set<string>();
      let asked = 0;
      await eventually(
        'another authority signs',
        async () => {
          controller.assertRunning();
          const [bundle = ''] = await caBundles();
          serials.add(await shownCertificate(controller, bundle));
          signers.add((await fieldsOf('runtime-enforcer-ca'))['tls.crt'] ?? '');
          asked++;
          return signers.size > 1 && serials.size > 3 ? true : undefined;
        },
        ROTATION_MS,
      );
      expect(asked).toBeGreaterThan(10);
      await place.stopAll();
    },
  );

  it('are there as soon as it is ready, of one authority, under the names that others look for', async () => {
    await emptySecrets();
    const [one, other] = await Promise.all([start('one'), start('other')]);
    await Promise.all([one.ready(), other.ready()]);
    const { 'ca.crt': trusted = '', 'tls.crt': signer = '' } = await fieldsOf('runtime-enforcer-ca');
    const authority = new X509Certificate(signer);
    for (const part of PARTS) {
      const fields = await fieldsOf(`runtime-enforcer-${part}-tls`);
      const certificate = new X509Certificate(fields['tls.crt'] ?? '');
      expect(certificate.verify(authority.publicKey), part).toBe(true);
      expect(fields['ca.crt'], part).toBe(trusted);
    }
    const collector = new X509Certificate(
      (await fieldsOf('runtime-enforcer-otel-collector-tls'))['tls.crt'] ?? '',
    );
    expect(
      collector.checkHost(`runtime-enforcer-otel-collector.${NAMESPACE}.svc.cluster.local`),
    ).toBeDefined();
    expect(new Set(await caBundles())).toEqual(new Set([trusted]));
    const serials = await Promise.all([shownCertificate(one, trusted), shownCertificate(other, trusted)]);
    expect(new Set(serials).size).toBe(1);
    await place.stopAll();
  });

  it('are not made by who may not: it says what is missing, and ends', { timeout: 120_000 }, async () => {
    await directRequest(plane, { method: 'DELETE', path: `${SECRETS}/runtime-enforcer-webhook-tls` });
    const controller = await start('denied');
    const log = await eventually(
      'it says so',
      async () => {
        const text = await controller.logTail();
        return text.includes('run helm upgrade') ? text : undefined;
      },
      30_000,
    );
    expect(log).toContain('runtime-enforcer-webhook-tls is missing');
    await place.stopAll();
  });
});

it('takes no right on secrets that are not its own', async () => {
  const rendered = await renderChart({ values: { certificates: { mode: 'generated' } } });
  const rules = rendered
    .filter(({ object }) => object.kind === 'Role' || object.kind === 'ClusterRole')
    .flatMap(
      ({ object }) =>
        (object as KubeObject & { rules: { resources?: string[]; resourceNames?: string[] }[] }).rules,
    )
    .filter(({ resources = [] }) => resources.includes('secrets'));
  expect(rules).toHaveLength(1);
  expect(rules[0]?.resourceNames).toHaveLength(6);
});
