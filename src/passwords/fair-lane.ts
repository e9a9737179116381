/** Ends the wait of a task. True: it is the task's turn. False: the task lost its place. */
type Waiting = (isTurn: boolean) => void

/** Places for waiting tasks, shared by networks. */
export interface Lane {
  /**
   * Takes a place. If the lane is full, the network with the most places loses its newest place to a network that has fewer.
   * @returns false if there is no place for this network
   */
  enter(network: string, task: Waiting): boolean
  /** Gives the place back. */
  leave(network: string, task: Waiting): void
  /** Returns the oldest task of the network whose turn it is, and gives its place back. Undefined: no task waits. */
  next(): Waiting | undefined
}

/** Creates a lane with `places` places. Networks take turns, and the tasks of one network stay in order. */
export function createLane(places: number): Lane {
  // In the order of the turns: the first network is next.
  const networks = new Map<string, Waiting[]>()
  let taken = 0

  function leave(network: string, task: Waiting): void {
    const tasks = networks.get(network) ?? []
    const index = tasks.indexOf(task)
    if (index === -1) return
    tasks.splice(index, 1)
    taken--
    if (tasks.length === 0) networks.delete(network)
  }

  /** Takes the newest place from the network with the most places. Returns false if that network has no more than `least` places. */
  function makeRoom(least: number): boolean {
    let [heaviest, most] = ['', least]
    for (const [network, { length }] of networks) if (length > most) [heaviest, most] = [network, length]
    const task = networks.get(heaviest)?.at(-1)
    if (most === least || !task) return false
    leave(heaviest, task)
    task(false)
    return true
  }

  return {
    enter(network, task) {
      const tasks = networks.get(network) ?? []
      if (taken >= places && !makeRoom(tasks.length + 1)) return false
      networks.set(network, tasks)
      tasks.push(task)
      taken++
      return true
    },
    leave,
    next() {
      const [network, tasks] = networks.entries().next().value ?? []
      const task = tasks?.[0]
      if (network === undefined || !tasks || !task) return undefined
      leave(network, task)
      if (tasks.length > 0) {
        networks.delete(network) // to the end of the order
        networks.set(network, tasks)
      }
      return task
    },
  }
}
