import type { AutomaticPurge } from '../admin/purge/automatic-purge'
import type { Background } from '../core/background'
import type { MailQueue } from '../mail/mail-queue'

/**
 * The longest time that `drain` waits, in milliseconds. The time is short, because orchestrators kill a process 10 to 30 seconds after they
 * asked it to stop.
 */
const longestMs = 10_000

/**
 * Returns the function that finishes the work after responses. Each call starts the waiting work at once, tries each mail that failed once
 * more, and ends a purge after its current batch. The promise resolves when everything that began before the call has ended, or after 10
 * seconds.
 */
export function drainer({
  background,
  mailQueue,
  purge = null,
}: {
  background: Background
  mailQueue: MailQueue | null
  purge?: AutomaticPurge | null
}): () => Promise<void> {
  return async () => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, longestMs) // keeps the process alive, because the caller waits
    })
    // The work posts mails, so the mails come second.
    const finished = background.finish().then(() => mailQueue?.finish())
    await Promise.race([Promise.all([finished, purge?.pause()]), late]).finally(() => clearTimeout(timer))
  }
}
