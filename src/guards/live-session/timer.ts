/** What a timer of Node holds, in milliseconds. A longer one would end at once. */
const longestMs = 2 ** 31 - 1

/** Calls `run` once, never before `instant` nor within this call. Does not keep the process alive. @returns the function that stops it */
export function callAt(instant: Date, now: () => Date, run: () => void): () => void {
  let timer: NodeJS.Timeout
  const wait = () => {
    const leftMs = instant.getTime() - now().getTime()
    timer = setTimeout(() => (now() < instant ? wait() : run()), Math.max(1, Math.min(leftMs, longestMs))).unref()
  }
  wait()
  return () => clearTimeout(timer)
}
