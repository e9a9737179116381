import type { Knex } from 'knex'
import type supertest from 'supertest'
import type { LocalHost } from '../local/people'
import type { Act, Send } from './acts'
import { atRest } from './at-rest'
import type { Moment } from './cutting-proxy'
import { emptyTables, pictureOf } from './picture'

/** Where an act meets its fault. */
export interface Rig {
  /** A host on the same rows that is well. */
  readonly host: LocalHost
  /** The act undisturbed; how many statements it takes. */
  count(send: Send): Promise<{ answer: supertest.Response; statements: number }>
  /** The act with a fault at its n-th statement; null: nobody answered. */
  strike(send: Send, statement: number, moment: Moment): Promise<supertest.Response | null>
}

export interface Swept {
  statements: number
  strikes: number
  /** How often the rows were as before, and as after. */
  before: number
  after: number
  violations: string[]
}

interface Course {
  before: string
  after: string
}

/** A fault at every statement of the act, before it reaches the server and after: all of it is kept, or nothing, and the answer knows which. */
export async function sweep(act: Act, rig: Rig): Promise<Swept> {
  const { statements, ...course } = await undisturbed(act, rig)
  const swept: Swept = { statements, strikes: 0, before: 0, after: 0, violations: [] }
  for (let statement = 1; statement <= statements; statement++) {
    for (const moment of ['before', 'after'] as const) {
      const { state, violations } = await strike(act, rig, course, statement, moment)
      swept.strikes++
      if (state !== 'between') swept[state]++
      swept.violations.push(...violations.map((violation) => `${moment} statement ${statement} of ${statements}: ${violation}`))
    }
  }
  return swept
}

async function undisturbed(act: Act, rig: Rig): Promise<Course & { statements: number }> {
  await emptyTables(rig.host.knex)
  const send = await act.prepare(rig.host)
  const before = await pictureOf(rig.host.knex)
  const { answer, statements } = await rig.count(send)
  if (answer.status !== act.status) throw new Error(`undisturbed it answers ${answer.status}: ${answer.text}`)
  return { before, after: await pictureOf(rig.host.knex), statements }
}

type State = 'before' | 'after' | 'between'

async function strike(
  act: Act,
  rig: Rig,
  course: Course,
  statement: number,
  moment: Moment,
): Promise<{ state: State; violations: string[] }> {
  const { knex } = rig.host
  await emptyTables(knex)
  const send = await act.prepare(rig.host)
  const answer = await rig.strike(send, statement, moment)
  const state = await stateOf(knex, course)
  const violations = judge(act, course, { answer, state, moment })
  if (state === 'between') violations.push(`half-written:\n${await pictureOf(knex)}`)
  if (answer === null || answer.status === 503) violations.push(...(await again(act, rig, course, send, state)))
  return { state, violations }
}

async function stateOf(knex: Knex, { before, after }: Course): Promise<State> {
  const now = await pictureOf(knex)
  return now === before ? 'before' : now === after ? 'after' : 'between'
}

interface Outcome {
  answer: supertest.Response | null
  state: State
  moment: Moment
}

function judge(act: Act, { before, after }: Course, { answer, state, moment }: Outcome): string[] {
  if (answer === null) return []
  const changes = before !== after
  if (answer.status === act.status) {
    return changes && state === 'before' && !act.answersFirst ? [`answered ${answer.status}, and nothing was kept`] : []
  }
  if (answer.status !== 503) return [`answered ${answer.status} ${answer.text}`]
  const told = [...wrongs(answer)]
  if (changes && state === 'after' && moment === 'before') told.push('answered 503, and all of it was done')
  return told
}

/** What is wrong with a 503. */
function* wrongs({ body, headers, text }: supertest.Response): Generator<string> {
  const { code, detail, details, ...more } = body as Record<string, unknown>
  if (code !== 'SERVICE_UNAVAILABLE' || typeof detail !== 'string' || JSON.stringify(details) !== '{}' || Object.keys(more).length > 0)
    yield `another body: ${text}`
  if (!/^\d+$/.test(String(headers['retry-after']))) yield 'no Retry-After'
  if (headers['cache-control'] !== 'no-store') yield 'not no-store'
  const lines = (headers['set-cookie'] ?? []) as unknown as string[] // one header that Node gives as a list
  for (const line of lines) if (/^(access_token|refresh_token|auth_session)=[^;]/.test(line)) yield `a cookie: ${line}`
}

/** Where nothing was kept nothing was spent: the second try succeeds. Where all was, it is refused as it would be at any time. */
async function again(act: Act, { host }: Rig, course: Course, first: Send, state: State): Promise<string[]> {
  if (act.isSpentElsewhere && state === 'before') await emptyTables(host.knex)
  const send = act.isSpentElsewhere && state === 'before' ? await act.prepare(host) : first
  const { status, text } = await send(host.app)
  if (state === 'before' && course.before !== course.after) {
    await atRest(host.knex)
    if (status !== act.status) return [`tried again it answers ${status} ${text}`]
    return (await pictureOf(host.knex)) === course.after ? [] : [`tried again it ends otherwise:\n${await pictureOf(host.knex)}`]
  }
  return status >= 500 && !act.isSpentElsewhere ? [`after all was done, a second try answers ${status} ${text}`] : []
}
