import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Order, Report } from './races-child'

/** Opens nothing yet: `tell` it the database first. */
export function start(timeZone = 'UTC'): ChildProcess {
  return fork(join(import.meta.dirname, 'races-child.ts'), {
    execArgv: ['--import', 'tsx'],
    serialization: 'advanced',
    env: { ...process.env, TZ: timeZone },
  })
}

export async function tell(child: ChildProcess, order: Order): Promise<Report> {
  const waiting = new AbortController()
  const report = once(child, 'message', { signal: waiting.signal })
  const death = once(child, 'exit', { signal: waiting.signal }).then(() => ['the other process ended'])
  child.send(order)
  const [answer] = await Promise.race([report, death])
  waiting.abort()
  await Promise.allSettled([report, death])
  if (typeof answer === 'string' && answer !== 'ready') throw new Error(answer)
  return answer as Report // the only thing races-child.ts sends
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exit = once(child, 'exit')
  child.disconnect()
  await exit
}
