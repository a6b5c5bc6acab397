import { isJsonObject, isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';

const REVIEW_VERSION = 'admission.k8s.io/v1';
/** The API server shortens what is longer, and drops what exceeds 4 KiB in all. */
const MAX_WARNING_CHARACTERS = 256;
const MAX_WARNINGS = 10;

/** What the API server asks about. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly kind: string;
  readonly namespace: string;
  /** Empty for an object whose name the server makes up. */
  readonly name: string;
  readonly user: RequestUser;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
}

/** Who asks, as the API server authenticated it. */
export interface RequestUser {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface JsonPatchOperation {
  readonly op: 'add' | 'replace';
  readonly path: string;
  readonly value: unknown;
}

/** The answer to a request. Warnings are shown to the user; audit annotations stand in the API server's audit log. */
export type AdmissionVerdict = {
  readonly warnings?: readonly string[];
  readonly auditAnnotations?: Readonly<Record<string, string>>;
} & (
  | { readonly allowed: true; readonly patch?: readonly JsonPatchOperation[] }
  | { readonly allowed: false; readonly refusal: Refusal }
);

export interface Refusal {
  readonly code: 403 | 410 | 422;
  readonly message: string;
  /** The field that is wrong. */
  readonly field?: string;
}

/** Judges one request; must have no side effect. What it throws makes the failure policy of its webhook decide. */
export type Admit = (request: AdmissionRequest, signal: AbortSignal) => Promise<AdmissionVerdict>;

export const ALLOWED: AdmissionVerdict = { allowed: true };

const REASONS = { 403: 'Forbidden', 410: 'Gone', 422: 'Invalid' } as const satisfies Record<
  Refusal['code'],
  string
>;
const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;

/** What was sent is no AdmissionReview. */
export class ReviewError extends Error {
  override readonly name = 'ReviewError';
}

/** Reads an AdmissionReview from the text of a request. @throws ReviewError */
export function parseReview(text: string): AdmissionRequest {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new ReviewError('the body is not JSON; expected an AdmissionReview');
  }
  if (
    !isJsonObject(json) ||
    json['apiVersion'] !== REVIEW_VERSION ||
    json['kind'] !== 'AdmissionReview' ||
    !isJsonObject(json['request'])
  ) {
    throw new ReviewError(`the body is no AdmissionReview of ${REVIEW_VERSION} with a request`);
  }
  const { request } = json;
  const operation = OPERATIONS.find((each) => each === request['operation']);
  const uid = textOf(request['uid']);
  if (operation === undefined || uid === '') {
    throw new ReviewError('the request of the AdmissionReview has no uid, or no known operation');
  }
  const { kind, object, oldObject } = request;
  return {
    uid,
    operation,
    kind: isJsonObject(kind) ? textOf(kind['kind']) : '',
    namespace: textOf(request['namespace']),
    name: textOf(request['name']),
    user: userOf(request['userInfo']),
    object: objectOf(object),
    oldObject: objectOf(oldObject),
  };
}

/** The AdmissionReview that answers a request. */
export function reviewAnswer(uid: string, verdict: AdmissionVerdict): unknown {
  const { warnings = [], auditAnnotations } = verdict;
  return {
    apiVersion: REVIEW_VERSION,
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: verdict.allowed,
      ...(warnings.length > 0 && {
        warnings: warnings.slice(0, MAX_WARNINGS).map((each) => each.slice(0, MAX_WARNING_CHARACTERS)),
      }),
      ...(auditAnnotations && { auditAnnotations }),
      ...(verdict.allowed ? patchOf(verdict.patch) : { status: statusOf(verdict.refusal) }),
    },
  };
}

/** A verdict that refuses. */
export function refused(
  code: Refusal['code'],
  message: string,
  more: Pick<Refusal, 'field'> = {},
): AdmissionVerdict {
  return { allowed: false, refusal: { code, message, ...more } };
}

function patchOf(patch: readonly JsonPatchOperation[] | undefined): object {
  if (patch === undefined || patch.length === 0) return {};
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
}

function statusOf({ code, message, field }: Refusal): object {
  return {
    status: 'Failure',
    code,
    reason: REASONS[code],
    message,
    ...(field !== undefined && { details: { causes: [{ reason: 'FieldValueInvalid', field, message }] } }),
  };
}

/** An object whose name is to be made up has none yet. */
function objectOf(json: unknown): KubeObject | undefined {
  if (isKubeObject(json)) return json;
  if (!isJsonObject(json) || !isJsonObject(json['metadata'])) return undefined;
  return { ...json, metadata: { ...json['metadata'], name: '' } };
}

/** Who a review says that somebody is; what is missing is empty. */
export function userOf(json: unknown): RequestUser {
  const { username, uid, groups, extra } = isJsonObject(json) ? json : {};
  return {
    username: textOf(username),
    uid: textOf(uid),
    groups: textsOf(groups),
    extra: Object.fromEntries(
      Object.entries(isJsonObject(extra) ? extra : {}).map(([name, values]) => [name, textsOf(values)]),
    ),
  };
}

function textsOf(json: unknown): string[] {
  return Array.isArray(json) ? json.filter((each) => typeof each === 'string') : [];
}

function textOf(json: unknown): string {
  return typeof json === 'string' ? json : '';
}
