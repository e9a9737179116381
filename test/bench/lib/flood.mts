import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, openConnection } from './connection.mjs'

export type Ask = (request: string) => Promise<Answer>

export interface Flood {
  /** One move of the attacker, of one request or a few that belong together; `turn` counts the moves. */
  attack(ask: Ask, turn: number): Promise<unknown>
  perSecond: number
  connections: number
  /** On the clock of `performance.now()`. */
  until: number
}

/** An attacker who sends what the rate allows. Returns how many requests were answered with each status. */
export async function flood(origin: string, { attack, perSecond, connections, until }: Flood): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  let due = performance.now()
  let turn = 0

  async function waitForTurn(): Promise<void> {
    const now = performance.now()
    due = Math.max(due + 1000 / perSecond, now - 1000) // what a busy server missed for longer is not sent later
    if (due > now) await sleep(due - now)
  }

  await Promise.all(
    Array.from({ length: connections }, async () => {
      const connection = await openConnection(origin)
      const ask: Ask = async (request) => {
        await waitForTurn()
        const answer = await connection.ask(request)
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        return answer
      }
      while (performance.now() < until) await attack(ask, turn++)
      connection.close()
    }),
  )
  return statuses
}

/** The header by which the proxy names the client. */
export function from(address: string): Record<string, string> {
  return { 'x-forwarded-for': address }
}
