/** Work of the leader alone. Made anew for each leadership. */
export interface LeaderTask {
  readonly name: string;
  start(): void;
  /** Resolved when nothing of it runs any more. */
  stop(): Promise<void>;
}
