/** A queue whose batches nobody here has read yet. */
const assumedBatchBytes = 4096
/** Another request costs about as much, with the Lambda that waits for it, as reading this much for nothing. */
const bytesWorthARequest = 8192
/** Queues whose mean is remembered; beyond it all are forgotten, which costs a read too much or too little each. */
const maxQueues = 10_000

/**
 * Knows how many batches a reader should ask for to get a number of bytes. DynamoDB limits a page by count alone (and at
 * 1 MB), and charges all that it has read: asking for too many pays for batches that are not returned, asking for too few
 * costs another request. So the mean size of a queue's batches is remembered from the last pages.
 */
export function createPageSizes() {
  const meanBytes = new Map<number, number>()

  return {
    batchesIn(queueId: number, bytes: number): number {
      const mean = meanBytes.get(queueId) ?? assumedBatchBytes
      return Math.max(Math.ceil(bytes / mean), Math.floor((bytes + bytesWorthARequest) / mean), 1)
    },

    /** The newest page counts for half, so a change in what is published is followed within a few. */
    observe(queueId: number, batches: number, bytes: number): void {
      if (batches === 0) return
      const mean = Math.max(1, bytes / batches)
      const before = meanBytes.get(queueId)
      if (before === undefined && meanBytes.size >= maxQueues) meanBytes.clear()
      meanBytes.set(queueId, before === undefined ? mean : (before + mean) / 2)
    },
  }
}
