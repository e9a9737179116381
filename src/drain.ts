import type { Background } from './background'
import type { Postman } from './mail/postman'

/** An orchestrator kills a process some 10 to 30 seconds after it asked it to stop. */
const longestMs = 10_000

/**
 * Returns what ends the work after answers: what waits to begin begins, and mails that wait for another attempt are tried at once.
 * It resolves when nothing is under way, or after 10 seconds; a second call waits for the same end.
 */
export function drainer({ background, postman }: { background: Background; postman: Postman | null }): () => Promise<void> {
  let drained: Promise<void> | null = null

  async function untilIdle(): Promise<void> {
    // Work may post a mail in its end, so both are asked again.
    for (let pending = background.ended(); pending; pending = background.ended()) await pending
    for (let pending = postman?.ended(); pending; pending = postman?.ended()) await pending
    if (background.ended()) await untilIdle()
  }

  async function drain(): Promise<void> {
    background.hurry()
    postman?.hurry()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, longestMs) // it keeps the process alive: somebody waits for the end
    })
    await Promise.race([untilIdle(), late]).finally(() => clearTimeout(timer))
  }

  return () => {
    drained ??= drain()
    return drained
  }
}
