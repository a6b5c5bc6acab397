import { fieldError, type FieldError, formatFieldError, quote, type Parsed } from './field-error.ts';
import { EVIDENCE_ANNOTATION, PROMOTE_LABEL, PROMOTED_FROM_LABEL, WORKLOAD_POLICY_KIND } from './keys.ts';
import { objectNameError } from './kubernetes-name.ts';
import { MAX_MESSAGE_CHARACTERS } from './limits.ts';
import { escapeUnprintable } from './printable-text.ts';
import { promotionEvidence } from './promotion-evidence.ts';
import {
  DEFAULT_UNLISTED_CONTAINERS,
  MAX_POLICY_NAME_CHARACTERS,
  POLICY_MODES,
  type PolicyMode,
  type WorkloadPolicy,
} from './workload-policy.ts';
import { parseWorkloadPolicyProposal, type WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/** Proposal condition: `True` while the promotion that its label asks for cannot be done. */
export const PROMOTION_FAILED_CONDITION = 'PromotionFailed';

/** Why a promotion cannot be done, and what to do about it. */
export interface PromotionFailure {
  readonly reason: PromotionFailureReason;
  /** One line of at most 1,024 characters, with the remedy. */
  readonly message: string;
}

/** `PolicyRefused`: the API server, or an admission check of somebody else, does not take the policy. */
export type PromotionFailureReason =
  'InvalidMode' | 'NameTooLong' | 'InvalidProposal' | 'PolicyExists' | 'PolicyRefused';

export type PromotionDecision =
  | { readonly action: 'create'; readonly policy: WorkloadPolicy }
  | { readonly action: 'fail'; readonly failure: PromotionFailure };

/** The mode that a proposal's promote label asks for, or why there is none. */
export function requestedMode(label: string): PolicyMode | PromotionFailure {
  const mode = POLICY_MODES.find((each) => each === label);
  if (mode !== undefined) return mode;
  return promotionFailure(
    'InvalidMode',
    `the label ${PROMOTE_LABEL} has the value ${quote(label)}; expected ${POLICY_MODES.join(' or ')}; set one of them, or remove the label`,
  );
}

/**
 * What a promotion makes of a proposal.
 * @param input the proposal as the API server holds it
 * @param label the value of its promote label
 */
export function decidePromotion(input: unknown, label: string): PromotionDecision {
  const mode = requestedMode(label);
  if (typeof mode !== 'string') return { action: 'fail', failure: mode };
  const parsed = parseWorkloadPolicyProposal(input);
  if (!parsed.ok) return failed('InvalidProposal', parsed.errors);
  const promoted = promote(parsed.value, mode);
  if (!promoted.ok) return failed('NameTooLong', promoted.errors);
  const { metadata, spec } = promoted.value;
  const annotations = new Map([[EVIDENCE_ANNOTATION, promotionEvidence(parsed.value)]]);
  return { action: 'create', policy: { metadata: { ...metadata, annotations }, spec } };
}

/** A policy of the proposal's name stands in its way, which was not made from it. */
export function policyExists(name: string): PromotionFailure {
  return promotionFailure(
    'PolicyExists',
    `${WORKLOAD_POLICY_KIND} ${quote(name)} exists and was not made from this proposal; delete it to have the proposal ` +
      `promoted, or remove the label ${PROMOTE_LABEL} and edit the policy`,
  );
}

/** @param said what the API server answered */
export function policyRefused(said: string): PromotionFailure {
  return promotionFailure(
    'PolicyRefused',
    `the policy was refused: ${escapeUnprintable(said)}; it is tried again every few minutes until it is taken`,
  );
}

function failed(reason: PromotionFailureReason, errors: readonly FieldError[]): PromotionDecision {
  return { action: 'fail', failure: promotionFailure(reason, errors.map(formatFieldError).join('; ')) };
}

function promotionFailure(reason: PromotionFailureReason, message: string): PromotionFailure {
  const characters = Array.from(message);
  if (characters.length <= MAX_MESSAGE_CHARACTERS) return { reason, message };
  return { reason, message: `${characters.slice(0, MAX_MESSAGE_CHARACTERS - 1).join('')}…` };
}

/**
 * The policy that a proposal becomes: same name, namespace and rules, nothing else of the proposal. Fails for a
 * name that no pod label can hold.
 */
export function promote(proposal: WorkloadPolicyProposal, mode: PolicyMode): Parsed<WorkloadPolicy> {
  const { name, namespace } = proposal.metadata;
  if (name.length > MAX_POLICY_NAME_CHARACTERS) {
    return {
      ok: false,
      errors: [
        fieldError(['metadata', 'name'], {
          message: `the name has ${name.length} characters, and pods name their policy in a label`,
          expected: `at most ${MAX_POLICY_NAME_CHARACTERS} characters`,
          remedy: 'create a WorkloadPolicy with a shorter name and these rules',
        }),
      ],
    };
  }
  const error = objectNameError(name, ['metadata', 'name']);
  if (error !== undefined) return { ok: false, errors: [error] };
  return {
    ok: true,
    value: {
      metadata: {
        name,
        namespace,
        labels: new Map([[PROMOTED_FROM_LABEL, name]]),
        annotations: new Map(),
        ownerReferences: [],
      },
      spec: {
        mode,
        unlistedContainers: DEFAULT_UNLISTED_CONTAINERS,
        binding: { autoBind: false },
        rulesByContainer: new Map(proposal.spec.rulesByContainer),
      },
    },
  };
}
