import { afterAll, beforeAll, expect, test } from 'vitest'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'
import { type FuzzHost, openFuzzHost, plans } from './fuzz/fuzz-host'
import { type FuzzReport, runFuzz } from './fuzz/run-fuzz'

const seed = Number(process.env.DOORWARD_FUZZ_SEED ?? 20_260)
const requests = Number(process.env.DOORWARD_FUZZ_REQUESTS ?? 4_200)
const isLong = requests >= 50_000
const isTold = process.env.DOORWARD_FUZZ_REQUESTS !== undefined

const hosts: FuzzHost[] = []
let report: FuzzReport

beforeAll(async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  for (const plan of plans) hosts.push(await openFuzzHost(sqlite, plan, mountedRoutes))
})
afterAll(async () => {
  for (const host of hosts) await host.close()
})

test('R-140: every route, asked anything at all, answers as the contract says: no 5xx of ours, the envelope for every refusal, and in time', async () => {
  report = await runFuzz(hosts, { seed, requests, ...(isTold && { tell }) })
  if (isTold) print(report)

  expect(report.violations.slice(0, 20), `seed ${seed}`).toEqual([])
  expect(report.requests).toBeGreaterThanOrEqual(requests)
}, 3_600_000)

// A seed that is repeated says nothing of the routes it does not ask; and what is skipped the suite would count.
if (requests >= 2_000) {
  test('no route was left out, and each was asked well enough to do what it is for', () => {
    const mounted = new Set(hosts.flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${path}`)))
    expect(mounted.size).toBeGreaterThan(50)
    expect(mounted.size).toBeGreaterThanOrEqual(pathsOfRouters().size)
    expect([...mounted].filter((name) => !report.routes.has(name))).toEqual([])
    const neverDone = [...mounted].filter((name) => report.routes.get(name)?.done === 0)
    if (isLong) expect(neverDone).toEqual([])
    else expect(neverDone.length).toBeLessThan(mounted.size / 4)
  })
}

if (isLong) {
  test('the heap is as large in the end as it was after the first third', () => {
    const { heap } = report
    const [early, late] = [heap.slice(5, 10), heap.slice(-5)].map((part) => part.reduce((sum, value) => sum + value, 0) / part.length)
    expect(Number(late) - Number(early)).toBeLessThan(8)
  })
}

/** As Express has them: what is mounted by other means than the table would show here. */
function pathsOfRouters(): Set<string> {
  const layers = hosts.flatMap(({ mounted }) => (mounted.auth as unknown as { stack: { route?: { path: string } }[] }).stack)
  const paths = new Set(layers.flatMap(({ route }) => route?.path ?? []))
  const known = new Set(hosts.flatMap(({ routes }) => routes.map(({ path }) => path)))
  expect([...paths].filter((path) => !known.has(path))).toEqual([])
  return paths
}

function tell({ requests, seconds, violations, heap }: FuzzReport): void {
  console.log(`  ${requests} requests, ${seconds.toFixed(0)} s, ${heap.at(-1)} MB, ${violations.length} violations ${violations[0] ?? ''}`)
}

function print({ requests, seconds, statuses, heap, routes, violations }: FuzzReport): void {
  const counted = [...statuses].sort(([one], [other]) => one - other).map(([status, count]) => `${status}: ${count}`)
  const fewest = [...routes].filter(([name]) => hosts.some((host) => host.routes.some(({ method, path }) => `${method} ${path}` === name)))
  fewest.sort(([, one], [, other]) => one.done - other.done)
  console.log(
    `\nExpress ${process.env.EXPRESS ?? '5'}, seed ${seed}: ${requests} requests in ${seconds.toFixed(0)} s (${(requests / seconds).toFixed(0)}/s), ${violations.length} violations`,
  )
  console.log(`  answers ${counted.join(', ')}`)
  console.log(
    `  ${fewest.length} routes; done least often: ${fewest
      .slice(0, 8)
      .map(([name, { asked, done }]) => `${name} ${done}/${asked}`)
      .join(', ')}`,
  )
  console.log(`  heap after collection, MB: ${heap.join(' ')}`)
}
