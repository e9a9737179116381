import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../support/free-port'
import { isQuick } from '../support/quick'

/** A Redis of the test's own, which it may freeze and kill. */
export interface RedisServer {
  readonly port: number
  /** Accepts connections and stays silent. */
  freeze(): void
  thaw(): void
  kill(): Promise<void>
  /** Again on the same port, empty. */
  restart(): Promise<void>
  close(): Promise<void>
}

const executable = 'redis-server' // of the system's package
const IN_CI = process.env.CI === 'true' || process.env.CI === '1'

/** False is announced; under CI it is an error, so that no pipeline passes without it. The quick suite has no Redis. */
export function hasRedis(): boolean {
  if (isQuick) return false
  const { error, status } = spawnSync(executable, ['--version'])
  if (!error && status === 0) return true
  const message = 'redis-server is not installed'
  if (IN_CI) throw new Error(message)
  console.warn(`\n*** SKIPPED: every test on Redis. ${message} ***\n`)
  return false
}

export async function startRedis(): Promise<RedisServer> {
  const port = await freePort()
  let server = await listening(port)
  process.once('exit', () => server.kill('SIGKILL'))
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const exit = once(server, 'exit')
    server.kill('SIGKILL')
    await exit
  }
  return {
    port,
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    kill,
    async restart() {
      server = await listening(port)
    },
    close: kill,
  }
}

async function listening(port: number): Promise<ChildProcess> {
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const server = spawn(executable, options, { stdio: 'ignore' })
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await answers(port)) return server
    await delay(25)
  }
  server.kill('SIGKILL')
  throw new Error('redis-server did not start')
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false // not yet
  } finally {
    socket.destroy()
  }
}
