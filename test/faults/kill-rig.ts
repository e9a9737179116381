import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type supertest from 'supertest'
import type { Send } from './acts'
import type { ChildOrder, Death } from './killed-child'
import type { Rig } from './sweep'
import type { WellHost } from './well-host'

export interface KillRig extends Rig {
  /** Sends it to a host in a process of its own, which dies when it is told to; `answer` null: nobody answered; `statements` null: it died. */
  kill(send: Send, death: Death): Promise<{ answer: supertest.Response | null; statements: number | null }>
  close(): Promise<void>
}

interface Child {
  process: ChildProcess
  origin: string
}

/** A host whose process is killed, over and over; the next one starts at once. */
export async function killRig(host: WellHost): Promise<KillRig> {
  const { config } = host.opened
  if (!config) throw new Error('this database lives in one process only')
  const order: ChildOrder = { config, clients: host.clients }
  let next = start(order)

  const kill: KillRig['kill'] = async (send, death) => {
    const { process: child, origin } = await next
    const exit = once(child, 'exit').then(() => null)
    await tell(child, death)
    const answer = await send(origin).catch(() => null)
    const isSure = 'before' in death || ('at' in death && death.at !== 'never')
    const statements = await (answer && !isSure ? Promise.race([exit, tell(child, { at: 'never' })]) : exit)
    if (statements === null) next = start(order)
    return { answer, statements }
  }

  return {
    host,
    kill,
    async count(send) {
      const { answer, statements } = await kill(send, { at: 'never' })
      if (!answer || statements === null) throw new Error('the process died although nobody killed it')
      return { answer, statements }
    },
    strike: async (send, statement, moment) => (await kill(send, { statement, moment })).answer,
    async close() {
      const { process: child } = await next
      const exit = once(child, 'exit')
      child.disconnect()
      await exit
    },
  }
}

async function start(order: ChildOrder): Promise<Child> {
  const file = join(import.meta.dirname, 'killed-child.ts')
  const child = fork(file, { execArgv: ['--import', 'tsx'], serialization: 'advanced' })
  child.send(order)
  const [port] = (await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [null])])) as [number | null]
  if (port === null) throw new Error('the other process did not start')
  return { process: child, origin: `http://127.0.0.1:${port}` }
}

async function tell(child: ChildProcess, death: Death): Promise<number> {
  const counted = once(child, 'message')
  child.send(death)
  const [statements] = (await counted) as [number]
  return statements
}
