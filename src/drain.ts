import type { Background } from './background'
import type { Postman } from './mail/postman'

/**
 * The longest time that `drain` waits, in milliseconds. The time is short, because orchestrators kill a process 10 to 30 seconds after they
 * asked it to stop.
 */
const longestMs = 10_000

/**
 * Returns the function that finishes the work after responses. The function starts all waiting work at once, and sends the mails that wait
 * for another attempt. The promise of the returned function resolves when no work is left, or after 10 seconds. A second call returns the
 * same promise.
 */
export function drainer({ background, postman }: { background: Background; postman: Postman | null }): () => Promise<void> {
  let drained: Promise<void> | null = null

  async function untilIdle(): Promise<void> {
    // Work can post a mail, so the function waits for the work first and then for the mails. If new work has started meanwhile, the
    // function waits again.
    for (let pending = background.ended(); pending; pending = background.ended()) await pending
    for (let pending = postman?.ended(); pending; pending = postman?.ended()) await pending
    if (background.ended()) await untilIdle()
  }

  async function drain(): Promise<void> {
    background.hurry()
    postman?.hurry()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, longestMs) // keeps the process alive, because the caller waits
    })
    await Promise.race([untilIdle(), late]).finally(() => clearTimeout(timer))
  }

  return () => {
    drained ??= drain()
    return drained
  }
}
