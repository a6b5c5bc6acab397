import { X509Certificate } from 'node:crypto';
import { VERSION, WORKLOAD_POLICY_PLURAL, WORKLOAD_POLICY_PROPOSAL_PLURAL } from '@runtime-enforcer/api/keys';
import { type KubeObject, objectKey } from '@runtime-enforcer/kube/kube-object';
import { COMPONENT_LABEL, isReady } from '../cluster/components.ts';
import { fieldOf, listAt, textAt } from '../output/json-field.ts';
import type { ClusterFacts } from './facts.ts';
import { counted } from '../output/named.ts';
import { type Finding, INSTALL_COMMAND } from './finding.ts';

const DAY_MS = 86_400_000;
/** Renewal happens long before; who sees less than this has none. */
const CERTIFICATE_WARNING_MS = 7 * DAY_MS;

/** The custom resources are there, as this version knows them. */
export function checkCustomResources({ customResources }: ClusterFacts): readonly Finding[] {
  if (!customResources.ok) return [];
  return [WORKLOAD_POLICY_PLURAL, WORKLOAD_POLICY_PROPOSAL_PLURAL].flatMap((plural): readonly Finding[] => {
    const crd = customResources.value.find((each) => textAt(each, 'spec', 'names', 'plural') === plural);
    const base = {
      check: 'custom-resources',
      severity: 'error',
      subject: plural,
      repair: INSTALL_COMMAND,
    } as const;
    if (crd === undefined) return [{ ...base, message: 'the custom resource is not installed' }];
    const isServed = listAt(crd, 'spec', 'versions').some(
      (each) => textAt(each, 'name') === VERSION && fieldOf(each, 'served') === true,
    );
    if (!isServed) return [{ ...base, message: `the server does not serve version ${VERSION} of it` }];
    const established = listAt(crd, 'status', 'conditions').find(
      (each) => textAt(each, 'type') === 'Established',
    );
    if (textAt(established, 'status') === 'True') return [];
    return [
      {
        ...base,
        message: 'the server has not accepted it',
        repair: `kubectl describe crd ${crd.metadata.name}`,
      },
    ];
  });
}

/** A controller runs, without which nothing is promoted and no status is written. */
export function checkControllers({ controllers }: ClusterFacts): readonly Finding[] {
  if (!controllers.ok) return [];
  const { value: pods } = controllers;
  const base = { check: 'controller', severity: 'error', subject: 'controller' } as const;
  if (pods.length === 0) return [{ ...base, message: 'no controller runs', repair: INSTALL_COMMAND }];
  if (pods.some(isReady)) return [];
  const [pod] = pods;
  return [{ ...base, message: 'no controller is ready', ...(pod && { repair: logsOf(pod) }) }];
}

/** The webhooks and the admission policy that guard the resources. */
export function checkAdmission({ webhooks, admissionPolicies }: ClusterFacts): readonly Finding[] {
  const findings: Finding[] = [];
  const base = { severity: 'warning', repair: INSTALL_COMMAND } as const;
  if (webhooks.ok) {
    for (const kind of ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']) {
      const configurations = webhooks.value.filter((each) => kindOf(each) === kind);
      if (configurations.length === 0) {
        findings.push({ ...base, check: 'webhooks', subject: kind, message: 'the product has none' });
      }
      for (const configuration of configurations) {
        const name = `${kind} ${configuration.metadata.name}`;
        for (const webhook of listAt(configuration, 'webhooks')) {
          if (textAt(webhook, 'clientConfig', 'caBundle') !== '') continue;
          const message = `${textAt(webhook, 'name')} has no CA: the API server cannot call it`;
          findings.push({ ...base, severity: 'error', check: 'webhooks', subject: name, message });
        }
      }
    }
  }
  if (admissionPolicies.ok && admissionPolicies.value.length === 0) {
    const message = 'nothing keeps the policy label of running pods from being changed';
    findings.push({ ...base, check: 'admission-policy', subject: 'ValidatingAdmissionPolicy', message });
  }
  return findings;
}

/** Certificates live long enough that nobody is surprised. */
export function checkCertificates({ webhooks, secrets, nowMs }: ClusterFacts): readonly Finding[] {
  const certificates: { readonly subject: string; readonly pem: string; readonly repair: string }[] = [];
  for (const configuration of webhooks.ok ? webhooks.value : []) {
    for (const webhook of listAt(configuration, 'webhooks')) {
      const subject = `CA of ${kindOf(configuration)} ${configuration.metadata.name}`;
      const pem = decoded(textAt(webhook, 'clientConfig', 'caBundle'));
      certificates.push({ subject, pem, repair: INSTALL_COMMAND });
    }
  }
  for (const secret of secrets.ok ? secrets.value : []) {
    const pem = decoded(textAt(secret, 'data', 'tls.crt'));
    // The controller fills these secrets and looks at them every half minute: one that does not is started again.
    const repair = `kubectl rollout restart deployment -n ${secret.metadata.namespace ?? ''} -l ${COMPONENT_LABEL}=controller`;
    certificates.push({ subject: `Secret ${objectKey(secret)}`, pem, repair });
  }
  const seen = new Set<string>();
  return certificates.flatMap(({ subject, pem, repair }): readonly Finding[] => {
    if (pem === '' || seen.has(subject)) return [];
    seen.add(subject);
    const base = { check: 'certificates', subject, repair } as const;
    let endsAtMs: number;
    try {
      endsAtMs = new X509Certificate(pem).validToDate.getTime();
    } catch {
      return [{ ...base, severity: 'error', message: 'it is not a certificate' }];
    }
    const leftMs = endsAtMs - nowMs;
    if (leftMs <= 0) return [{ ...base, severity: 'error', message: 'the certificate has expired' }];
    if (leftMs > CERTIFICATE_WARNING_MS) return [];
    const days = Math.floor(leftMs / DAY_MS);
    const when = days === 0 ? 'within a day' : `in ${counted(days, 'day')}`;
    return [{ ...base, severity: 'warning', message: `the certificate expires ${when}` }];
  });
}

export function logsOf({ metadata }: KubeObject): string {
  return `kubectl logs -n ${metadata.namespace ?? ''} ${metadata.name} --all-containers --tail=50`;
}

/** Objects of a list do not say what they are; which of the two it is shows in what it holds. */
function kindOf(configuration: KubeObject): string {
  const [webhook] = listAt(configuration, 'webhooks');
  const isMutating = fieldOf(webhook, 'reinvocationPolicy') !== undefined;
  return isMutating ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration';
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}
