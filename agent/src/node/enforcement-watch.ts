import type { KernelEnforcer } from '../kernel/enforcer.ts';
import type { Logger } from '../nri/handlers.ts';

const LOOK_MS = 2_000;

/** Tells when an operator overrides the policies of this node, or takes the enforcement off it. */
export interface EnforcementWatch {
  readonly attached: boolean;
  start(): void;
  stop(): Promise<void>;
}

export function createEnforcementWatch(parts: {
  enforcer: Pick<KernelEnforcer, 'override' | 'attached'>;
  log: Logger;
  failures: (place: string) => void;
}): EnforcementWatch {
  const { enforcer, log, failures } = parts;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();
  let override = 'none';
  let attached = true;

  const look = async (): Promise<void> => {
    try {
      const now = enforcer.override();
      if (now !== override) log.warn({ override: now, before: override }, 'override of this node changed');
      override = now;
      const isAttached = await enforcer.attached();
      if (isAttached !== attached) {
        if (isAttached) log.info({}, 'enforcement is on this node again');
        else log.error({}, 'enforcement was taken off this node; restart the agent to bring it back');
      }
      attached = isAttached;
    } catch (error) {
      failures('enforcement_watch');
      log.debug({ err: error }, 'the state of the enforcement could not be read');
    }
  };
  const schedule = (): void => {
    timer = setTimeout(() => {
      looking = look().then(() => {
        if (timer !== undefined) schedule();
      });
    }, LOOK_MS);
  };

  return {
    get attached() {
      return attached;
    },
    start() {
      looking = look();
      schedule();
    },
    async stop() {
      clearTimeout(timer);
      timer = undefined;
      await looking;
    },
  };
}
