import { ConfigurationError } from '../errors'
import type { AuthEvents } from '../events'
import { whenInstalled } from '../passwords/optional-package'
import { seeTroubleshooting } from '../troubleshooting'
import { type PayloadValue, watchAll } from './watch-all'

/** A `Registry` of prom-client; said by its methods, so that a host without prom-client needs none of its types. */
export interface MetricsRegistry {
  registerMetric(metric: never): void
  getSingleMetric(name: string): unknown
}

export interface EventMetrics {
  /** Counts every event from now on; returns what stops that. */
  watch(events: AuthEvents): () => void
}

const counterName = 'doorward_events_total'

/** Never an account: one series per person would be without bound, and would say who. */
const labels = ['provider', 'reason', 'code', 'route'] as const

/**
 * Counts every event in `doorward_events_total{event, provider, reason, code, route}`, a counter of prom-client (an optional
 * peer): `metrics(register).watch(auth.events)`. A label that an event does not have is left out.
 *
 * @throws ConfigurationError when prom-client is not installed, or the registry is none
 */
export function metrics(registry: MetricsRegistry): EventMetrics {
  const counter = counterIn(registry)
  const values = new Map(labels.map((label) => [label, boundedWords()]))
  return {
    watch: (events) =>
      watchAll(events, (event, payload) => {
        const given = labels.flatMap((label) =>
          payload[label] === undefined ? [] : [[label, values.get(label)?.(payload[label]) ?? 'other']],
        )
        counter.inc({ event, ...Object.fromEntries(given) })
      }),
  }
}

interface Counter {
  inc(labels: Record<string, string>): void
}

interface PromClient {
  Counter: new (options: { name: string; help: string; labelNames: readonly string[]; registers: readonly MetricsRegistry[] }) => Counter
}

/** Two routers of one process count in one counter. */
function counterIn(registry: MetricsRegistry): Counter {
  if (typeof registry?.registerMetric !== 'function' || typeof registry.getSingleMetric !== 'function')
    throw new ConfigurationError('metrics() needs a Registry of prom-client: its `register`, or one you made.')
  const there = registry.getSingleMetric(counterName)
  if (there) return there as Counter // the name is ours
  const client = whenInstalled('prom-client', () => require('prom-client') as PromClient) // as its types say
  if (!client)
    throw new ConfigurationError(
      `metrics() needs the package prom-client; run \`npm install prom-client\`. ${seeTroubleshooting('a-package-is-missing')}`,
    )
  const help = 'Events of doorward: logins, refusals, failures (docs/events.md).'
  return new client.Counter({ name: counterName, help, labelNames: ['event', ...labels], registers: [registry] })
}

const mostValues = 100

/** Ours are few; a host's provider keys or a hook's words must not fill the registry: past a hundred, and what is no word, is `other`. */
function boundedWords(): (value: PayloadValue | undefined) => string {
  const known = new Set<string>()
  return (value) => {
    const word = typeof value === 'string' && /^[\w:.-]{1,64}$/.test(value) ? value : 'other'
    if (known.size < mostValues) known.add(word)
    return known.has(word) ? word : 'other'
  }
}
