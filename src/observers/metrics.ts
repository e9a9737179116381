import { ConfigurationError } from '../core/errors'
import type { AuthEvents } from '../core/events'
import { seeTroubleshooting } from '../core/troubleshooting'
import { whenInstalled } from '../passwords/optional-package'
import { type PayloadValue, watchAll } from './watch-all'

/** The methods of a prom-client `Registry` that we use. A host without prom-client does not need the types of prom-client. */
export interface MetricsRegistry {
  registerMetric(metric: never): void
  getSingleMetric(name: string): unknown
}

export interface EventMetrics {
  /** Counts every event from now on. Returns a function that stops the counting. */
  watch(events: AuthEvents): () => void
}

const counterName = 'doorward_events_total'

/** No label names an account, because one series per person would be unbounded and would identify people. */
const labels = ['provider', 'reason', 'code', 'route'] as const

/**
 * Counts every event in `doorward_events_total{event, provider, reason, code, route}`: `metrics(register).watch(auth.events)`. The counter
 * is a counter of prom-client (an optional peer dependency). If an event lacks a label, the label is left out.
 *
 * @throws ConfigurationError if prom-client is not installed, or the registry is invalid
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

/** Two routers of a process share the counter. */
function counterIn(registry: MetricsRegistry): Counter {
  if (typeof registry?.registerMetric !== 'function' || typeof registry.getSingleMetric !== 'function')
    throw new ConfigurationError('metrics() needs a Registry of prom-client: its `register`, or one you made.')
  const there = registry.getSingleMetric(counterName)
  if (there) return there as Counter // the name is ours
  const client = whenInstalled('prom-client', () => require('prom-client') as PromClient) // according to prom-client's types
  if (!client)
    throw new ConfigurationError(
      `metrics() needs the package prom-client; run \`npm install prom-client\`. ${seeTroubleshooting('a-package-is-missing')}`,
    )
  const help = 'Events of doorward: logins, refusals, failures (docs/events.md).'
  return new client.Counter({ name: counterName, help, labelNames: ['event', ...labels], registers: [registry] })
}

const mostValues = 100

/** A host's provider keys or hooks could fill the registry. After a hundred values, and for text that is no word: `other`. */
function boundedWords(): (value: PayloadValue | undefined) => string {
  const known = new Set<string>()
  return (value) => {
    const word = typeof value === 'string' && /^[\w:.-]{1,64}$/.test(value) ? value : 'other'
    if (known.size < mostValues) known.add(word)
    return known.has(word) ? word : 'other'
  }
}
