/** `error`: something is not enforced, or cannot work. `warning`: it may soon be so. `note`: worth knowing. */
export type Severity = 'error' | 'warning' | 'note';

/** Something that is not as it should be. */
export interface Finding {
  /** The kind of defect: stable, for scripts. */
  readonly check: string;
  readonly severity: Severity;
  /** What it is about, such as `Deployment shop/web`. */
  readonly subject: string;
  readonly message: string;
  /** The command that repairs it, or the one that tells more where no command can. */
  readonly repair?: string;
}

/** What was asked for, or why it is not known. */
export type Known<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string };

export const INSTALL_COMMAND =
  'helm upgrade --install runtime-enforcer charts/runtime-enforcer -n runtime-enforcer --create-namespace';
