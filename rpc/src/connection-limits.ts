/** What strangers may cost, before they have shown a certificate. */
export interface HandshakeLimits {
  /** Handshakes under way, all addresses together; of more, the oldest is given up. */
  readonly pending: number;
  /** Handshakes under way from one address; more are refused. */
  readonly pendingPerAddress: number;
  /** Connections that one address may open per second in the long run, and at once. */
  readonly perSecond: number;
  readonly burst: number;
}

/** A node's controller and debugger open a few connections an hour; a peer whose handshake takes long is not one. */
export const HANDSHAKE_LIMITS: HandshakeLimits = {
  pending: 128,
  pendingPerAddress: 16,
  perSecond: 5,
  burst: 32,
};

/** Addresses whose rate is remembered. */
const MAX_ADDRESSES = 4096;

interface Allowance {
  tokens: number;
  atMs: number;
}

/** Decides which connections may begin a handshake. `C` is whatever stands for a connection. */
export interface HandshakeAdmission<C> {
  /**
   * @param nowMs monotonic
   * @returns whether it may begin; `evicted` is an older one to be closed for it
   */
  begin(connection: C, address: string, nowMs: number): { readonly admitted: boolean; readonly evicted?: C };
  /** The handshake succeeded, failed or was given up. */
  end(connection: C): void;
  readonly pending: number;
}

/** See {@link HandshakeLimits}: no number of strangers keeps a new peer from its turn. */
export function createHandshakeAdmission<C>(limits: HandshakeLimits): HandshakeAdmission<C> {
  const addressOf = new Map<C, string>();
  const pendingOf = new Map<string, number>();
  const allowances = new Map<string, Allowance>();

  const spend = (address: string, nowMs: number): boolean => {
    const known = allowances.get(address);
    const tokens =
      known === undefined
        ? limits.burst
        : Math.min(limits.burst, known.tokens + ((nowMs - known.atMs) / 1000) * limits.perSecond);
    // The addresses that came last stand last, and are remembered longest.
    allowances.delete(address);
    allowances.set(address, { tokens: tokens < 1 ? tokens : tokens - 1, atMs: nowMs });
    if (allowances.size > MAX_ADDRESSES) {
      for (const oldest of allowances.keys()) {
        allowances.delete(oldest);
        break;
      }
    }
    return tokens >= 1;
  };
  const end = (connection: C): void => {
    const address = addressOf.get(connection);
    if (address === undefined) return;
    addressOf.delete(connection);
    const left = (pendingOf.get(address) ?? 1) - 1;
    if (left === 0) pendingOf.delete(address);
    else pendingOf.set(address, left);
  };

  return {
    begin(connection, address, nowMs) {
      const pendingHere = pendingOf.get(address) ?? 0;
      if (!spend(address, nowMs) || pendingHere >= limits.pendingPerAddress) return { admitted: false };
      const oldest = addressOf.size >= limits.pending ? addressOf.keys().next() : undefined;
      if (oldest !== undefined && oldest.done !== true) end(oldest.value);
      addressOf.set(connection, address);
      pendingOf.set(address, (pendingOf.get(address) ?? 0) + 1);
      return oldest === undefined || oldest.done === true
        ? { admitted: true }
        : { admitted: true, evicted: oldest.value };
    },
    end,
    get pending() {
      return addressOf.size;
    },
  };
}
