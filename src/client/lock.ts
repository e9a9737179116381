/** The longest time that a tab holds the lock or waits for it, in milliseconds. */
const longestMs = 10_000

export const hasDocument = typeof document === 'object'
/** Not in Node, because one process of Node serves many people. */
export const isBrowser = hasDocument || typeof WorkerGlobalScope === 'function'

/** Relative URLs begin here, until the page gets another `<base>`. Undefined in Node. */
export const pageUrl = () => (hasDocument ? document.baseURI : globalThis.location?.href)

declare const WorkerGlobalScope: unknown

/**
 * Runs one request that can change the refresh cookie, while no other tab runs such a request. A tab that waited for 10 seconds continues
 * without the lock, because the tab that holds it can be frozen.
 * @param work `waited`: another tab had the lock, so the session may have changed
 */
export async function locked<T>(name: string | null, work: (waited: boolean) => Promise<T>): Promise<T> {
  const locks = name && navigator.locks // absent on http pages
  if (!locks) return work(false)
  let running: Promise<T> | undefined
  const run = (waited: boolean) => {
    running = work(waited)
    return Promise.race([running, pause(longestMs)]).catch(() => {}) // the caller gets the error from `running`
  }
  const giveUp = new AbortController()
  // A request throws where the browser forbids storage, and after 10 seconds.
  const request = (options: LockOptions, waited: boolean) => locks.request(name, options, (lock) => lock && run(waited)).catch(() => {})
  await request({ ifAvailable: true }, false)
  if (!running) {
    pause(longestMs).then(() => giveUp.abort())
    await request({ signal: giveUp.signal }, true)
  }
  return running ?? work(true)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => callIn(ms, resolve))
}

/** Keeps no process of Node alive. Cut to what a timer holds. @returns the timer, for `clearTimeout` */
export function callIn(ms: number, run: () => void): ReturnType<typeof setTimeout> {
  const timer = setTimeout(run, Math.min(ms, 2e9))
  ;(timer as { unref?: () => void }).unref?.()
  return timer
}

/** A call that comes while another runs gets the result of that one. */
export function shared<A extends unknown[], T>(work: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  let running: Promise<T> | undefined
  return (...args) => {
    running ??= work(...args).finally(() => {
      running = undefined
    })
    return running
  }
}
