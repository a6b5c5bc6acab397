import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';

const SERVER = `
  require('node:net')
    .createServer((socket) => socket.on('data', (data) => socket.write(data)))
    .listen(process.argv[1], () => console.log('ready'));
`;

/** Another process that does nothing but answer: what it takes longer than usual, the machine took. */
export interface EchoControl {
  /** Milliseconds of one question and answer. */
  ask(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts it, with its socket in `directory`. */
export async function startEchoControl(directory: string): Promise<EchoControl> {
  const path = join(directory, 'echo.sock');
  const command = ['--pdeathsig', 'KILL', process.execPath, '-e', SERVER, path];
  const child = spawn('setpriv', command, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  const socket = connect(path);
  await once(socket, 'connect');
  return {
    async ask() {
      const answer = once(socket, 'data');
      const start = performance.now();
      socket.write('?');
      await answer;
      return performance.now() - start;
    },
    async stop() {
      socket.destroy();
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    },
  };
}
