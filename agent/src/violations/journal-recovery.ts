import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { isCount } from './count.ts';
import type { JournalLine } from './violation-line.ts';

/** Longest line that is read; the agent writes shorter ones. */
const MAX_LINE_CHARACTERS = 64 * 1024;

/**
 * Reads back the latest line of each violation of each container from a violations file and the one rotated before
 * it. Lines that are not the agent's are passed over. Rejects with the file system's error, but for a missing file.
 */
export async function recoverJournal(file: string): Promise<JournalLine[]> {
  const latest = new Map<string, JournalLine>();
  for (const name of [`${file}.1`, file]) {
    try {
      for await (const text of createInterface({ input: createReadStream(name), crlfDelay: Infinity })) {
        const line = parseLine(text);
        if (line !== undefined) latest.set(lineKey(line), line);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return [...latest.values()];
}

function lineKey(line: JournalLine): string {
  return line.event === 'policy_violation'
    ? JSON.stringify([line.containerId, line.action, line.executablePath, line.recordKey !== undefined])
    : line.containerId;
}

function parseLine(text: string): JournalLine | undefined {
  if (text.length > MAX_LINE_CHARACTERS) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isJournalLine(value) ? value : undefined;
}

/** Only the fields that are counted on with. */
function isJournalLine(value: unknown): value is JournalLine {
  if (typeof value !== 'object' || value === null) return false;
  const line = value as Partial<Record<string, unknown>>;
  if (!isCount(line['occurrences']) || typeof line['containerId'] !== 'string') return false;
  if (line['event'] === 'policy_violation_overflow') return true;
  const times = [line['firstObservedTimestamp'], line['lastObservedTimestamp']];
  return (
    line['event'] === 'policy_violation' &&
    typeof line['executablePath'] === 'string' &&
    (line['action'] === 'monitor' || line['action'] === 'protect') &&
    times.every((time) => typeof time === 'string' && !Number.isNaN(Date.parse(time))) &&
    (line['recordKey'] === undefined || typeof line['recordKey'] === 'string') &&
    (line['recordCount'] === undefined || isCount(line['recordCount']))
  );
}
