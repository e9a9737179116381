import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { sentenceOf } from '../../../core/error-sentence'
import { answerOf, type Check, error, isLoopback, type Patient, type Result, warning } from './check'

export const processChecks: readonly Check[] = [
  { name: 'counters-shared', examine: ownCounters },
  { name: 'counters-answer', examine: silentCounters },
  { name: 'limits-off', examine: limitsOff },
  { name: 'environment', examine: developmentInPublic },
]

function ownCounters({ options, about }: Patient): Result {
  const processes = about.processes ?? (cluster.isWorker ? 2 : 1)
  if (processes < 2 || options.throttle?.counters) return null
  return warning(
    'Several processes serve the app, and each has its own counters.',
    'An attacker can try passwords in each process, and use a code once in each.',
    'Pass throttle.counters: a store of Redis or SQL (docs/limits.md).',
  )
}

async function silentCounters({ options }: Patient): Promise<Result> {
  const counters = options.throttle?.counters
  if (!counters) return { skipped: 'There is no shared store of counters.' }
  const key = `doorward:doctor:${randomUUID()}`
  try {
    const { count } = await answerOf(counters.increment(key, 60))
    await answerOf(counters.reset(key))
    if (count === 1) return null
    return error(`A new counter begins at ${count}.`, 'Rate limits refuse too early or too late.', 'Fix increment() of throttle.counters.')
  } catch (problem) {
    return error(
      `The shared store of counters does not answer: ${sentenceOf(problem)}`,
      'Meanwhile each process has its own counters.',
      'Check the connection of throttle.counters.',
    )
  }
}

function limitsOff({ options: { throttle = {} } }: Patient): Result {
  const off = (['login', 'routes', 'mfa', 'links', 'signup'] as const).filter((name) => throttle[name] === (false as unknown))
  if (off.length === 0) return null
  return error(
    `Rate limits are off: throttle.${off.join(', throttle.')}.`,
    'An attacker can guess passwords, codes and addresses without limit.',
    'Remove these options, or set limits.',
  )
}

function developmentInPublic({ ctx: { settings }, options, isProduction }: Patient): Result {
  const isTest = options.environment === 'test'
  if (isProduction || isTest || !settings.publicUrl.startsWith('https:') || isLoopback(settings.publicUrl)) return null
  return warning(
    `The app at ${settings.publicUrl} runs with the rules of development.`,
    'Set-ups that boot refuses in production are allowed.',
    'Set NODE_ENV=production, or pass environment.',
  )
}
